#include "answers/subject/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "answers/question/shell_word.hpp"
#include "answers/subject/way_in.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t looked_at = 4096;

constexpr std::string_view ways_of_pytorch_plan =
    "in the training script stowage.apply carries it out and stowage.verify compares a step with "
    "it "
    "(docs/apply.md)";

struct Signature {
  std::string_view bytes;
  std::string_view kind;
};

// The first bytes as each format's documentation has them.
constexpr std::array signatures{
    Signature{"\x89HDF\r\n\x1a\n"sv, hdf5_file},
    Signature{"GGUF"sv, "a GGUF model"},
    Signature{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv, pytorch_checkpoint},
    Signature{"\x1f\x8b"sv, "gzip-compressed"},
    Signature{"\x28\xb5\x2f\xfd"sv, "zstd-compressed"},
    Signature{"\xfd"
              "7zXZ\0"sv,
              "xz-compressed"},
    Signature{"BZh"sv, "bzip2-compressed"},
    Signature{"\x93NUMPY"sv, "a NumPy array"},
    Signature{"\x7f"
              "ELF"sv,
              "a program or a library"},
    Signature{"%PDF-"sv, "a PDF"},
    Signature{"\x89PNG\r\n\x1a\n"sv, "a PNG picture"},
    Signature{"\xff\xd8\xff"sv, "a JPEG picture"},
    Signature{"\xff\xfe"sv, "UTF-16 text"},
    Signature{"\xfe\xff"sv, "UTF-16 text"},
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_pickle(std::string_view content) {
  return content.size() > 2 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5;
}

// An 8-byte length, little-endian, then a JSON object.
bool is_safetensors(std::string_view content) {
  return content.size() > 9 && content.substr(5, 3) == "\0\0\0"sv && content[8] == '{' &&
         (content[9] == '"' || content[9] == '}' || content[9] == ' ');
}

// A ModelProto in the order in which protobuf writes it: ir_version (field 1, a small number), then
// opset imports, a producer, a domain or a graph (fields 2 to 8).
bool is_onnx(std::string_view content) {
  return content.size() > 4 && content[0] == '\x08' && content[1] > 0 && content[1] < 32 &&
         ((content[2] & 7) == 2 || content[2] == '\x28') && content[2] >= 0x12 &&
         content[2] <= 0x42;
}

std::string_view zip_kind(std::string_view content) {
  if (contains(content, "constants.pkl") || contains(content, "/code/")) {
    return torch_script;
  }
  if (contains(content, "data.pkl")) return pytorch_checkpoint;
  if (contains(content, "config.json")) return keras_archive;
  return zip_archive;
}

std::optional<std::string> json_kind(std::string_view content) {
  const auto first = std::find_if(content.begin(), content.end(), [](char c) {
    return std::isspace(static_cast<unsigned char>(c)) == 0;
  });
  if (first == content.end() || *first != '{') return std::nullopt;
  const auto names = [&](std::string_view key) {
    return contains(content, "\"" + std::string(key) + "\"");
  };
  if (names("model_type") || names("architectures")) {
    return "JSON of a Hugging Face configuration";
  }
  if (names("class_name") && names("config")) return "JSON of a Keras model";
  if (names("cells") && (names("cell_type") || names("nbformat"))) {
    return std::string(python_notebook);
  }
  if (names("schema_version")) {
    return "JSON that stowage printed as a result";
  }
  if (names("traceEvents")) return "JSON of a Chrome trace";
  // A description may be written in JSON, which is YAML too.
  if (names("model") || names("based_on")) return std::nullopt;
  return "JSON of another kind";
}

// Of a key at the start of a line.
bool has_key(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if ((at == 0 || text[at - 1] == '\n') && end < text.size() && text[end] == ':') return true;
  }
  return false;
}

std::string_view name_of(const SourceText& source) {
  return source.name == "-" ? std::string_view("stdin") : std::string_view(source.name);
}

/// Whether a kind says more than a file's name does.
bool tells_a_format(std::string_view kind) {
  return kind != "binary" && kind != zip_archive && kind != "JSON of another kind";
}

/// Of a file whose content says nothing: by its name.
std::optional<Diagnostic> named_as_another(const SourceText& source) {
  const std::string_view text = std::string_view(source.text).substr(0, looked_at);
  if (has_key(text, "model") || has_key(text, "layers") || has_key(text, "based_on")) {
    return std::nullopt;
  }
  const auto kind = kind_by_name(source.name);
  if (!kind) return std::nullopt;
  const bool is_empty =
      std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return Diagnostic{
      .message = is_empty ? fmt::format("'{}' is empty, and named as {}", source.name, *kind)
                          : fmt::format("'{}' is named as {}, and is no model's description",
                                        source.name, *kind),
      .hint = way_in(*kind, source.name)};
}

}  // namespace

StowageFile stowage_file(std::string_view text) {
  text = text.substr(0, looked_at);
  if (has_key(text, "stowage_plan")) return StowageFile::plan;
  if (is_pytorch_plan(text)) return StowageFile::pytorch_plan;
  if (has_key(text, "model") || has_key(text, "layers")) return StowageFile::none;
  if (has_key(text, "nvml_total") || has_key(text, "compute_capability")) return StowageFile::card;
  if (has_key(text, "pinned_limit")) return StowageFile::host;
  return StowageFile::none;
}

std::optional<std::string> foreign_kind(std::string_view content) {
  content = content.substr(0, looked_at);
  for (const Signature& signature : signatures) {
    if (content.starts_with(signature.bytes)) return std::string(signature.kind);
  }
  if (content.starts_with("PK\x03\x04")) return std::string(zip_kind(content));
  constexpr std::size_t tar_magic = 257;
  if (content.substr(std::min(tar_magic, content.size())).starts_with("ustar")) {
    return std::string(tar_archive);
  }
  if (content.substr(std::min<std::size_t>(4, content.size())).starts_with("TFL3")) {
    return std::string(tensorflow_lite);
  }
  if (content.starts_with("<?xml") && contains(content, "<net ")) return std::string(openvino);
  if (is_safetensors(content)) return "safetensors (weights without a network)";
  if (is_pickle(content)) return std::string(python_pickle);
  if (is_onnx(content)) return "an ONNX model";
  if (contains(content, "\0"sv)) return "binary";
  if (content.starts_with("#!") || content.starts_with("import ") ||
      contains(content, "\nimport ") || contains(content, "\nfrom torch")) {
    return std::string(program_source);
  }
  return json_kind(content);
}

std::optional<Diagnostic> not_a_model(const SourceText& source) {
  const auto mistake = [&](std::string_view kind, std::string hint) {
    return Diagnostic{
        .message = fmt::format("'{}' is {}, not a model's description", name_of(source), kind),
        .hint = std::move(hint)};
  };
  switch (stowage_file(source.text)) {
    case StowageFile::plan:
      return mistake("a plan",
                     fmt::format("stowage validate {} checks it", shell_word(source.name)));
    case StowageFile::pytorch_plan:
      return mistake("a plan for PyTorch", std::string(ways_of_pytorch_plan));
    case StowageFile::card:
      return mistake("a card's file",
                     fmt::format("`gpu` {} takes it, beside a model", shell_word(source.name)));
    case StowageFile::host:
      return mistake("a host's file",
                     fmt::format("stowage plan takes it as `host` {}, beside a model",
                                 shell_word(source.name)));
    case StowageFile::none:
      break;
  }
  const auto kind = foreign_kind(source.text);
  if (kind && (tells_a_format(*kind) || kind_by_name(source.name) == *kind))
    return mistake(*kind, way_in(*kind, source.name));
  if (auto named = named_as_another(source)) return named;
  if (!kind) return std::nullopt;
  return mistake(*kind, way_in(*kind, source.name));
}

std::optional<Diagnostic> not_a_plan(const SourceText& source) {
  const StowageFile found = stowage_file(source.text);
  if (found == StowageFile::plan) return std::nullopt;
  if (found == StowageFile::pytorch_plan) {
    return Diagnostic{
        .message = fmt::format("'{}' is a plan for PyTorch, and no executor of ours runs it",
                               name_of(source)),
        .hint = std::string(ways_of_pytorch_plan)};
  }
  const auto kind = foreign_kind(source.text);
  const std::string_view text = std::string_view(source.text).substr(0, looked_at);
  const bool is_model = !kind && (has_key(text, "model") || has_key(text, "layers"));
  if (!kind && !is_model) return std::nullopt;
  const std::string name = shell_word(source.name);
  return Diagnostic{
      .message = fmt::format("'{}' is {}, not a plan", name_of(source),
                             is_model ? std::string("a model's description") : *kind),
      .hint = is_model
                  ? fmt::format("stowage plan {} `gpu` NAME -o plan.yaml makes a plan of it", name)
                  : std::string("stowage plan MODEL `gpu` NAME -o plan.yaml makes a plan")};
}

std::optional<Diagnostic> program_to_export(const SourceText& source) {
  const auto kind = foreign_kind(source.text);
  if (kind != program_source || !source.name.ends_with(".py")) return std::nullopt;
  return Diagnostic{
      .message = fmt::format("'{}' is {}, not a plan or a model's description", source.name, *kind),
      .hint = fmt::format("python -m stowage export {} -o model.yaml writes a description of a "
                          "model that a function of it returns (docs/export.md)",
                          shell_word(source.name + ":FUNCTION"))};
}

}  // namespace stowage
