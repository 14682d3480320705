#include "answers/subject/way_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "answers/question/shell_word.hpp"
#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

struct NamedKind {
  std::string_view ending, kind;
};

// A longer ending stands before a shorter one that it has.
constexpr std::array<NamedKind, 35> named_kinds{{
    {".pth.tar", pytorch_checkpoint},
    {".tar.gz", tar_archive},
    {".tar.xz", tar_archive},
    {".tar.bz2", tar_archive},
    {".tgz", tar_archive},
    {".tar", tar_archive},
    {".nemo", tar_archive},
    {".pth", pytorch_checkpoint},
    {".pt", pytorch_checkpoint},
    {".pt2", pytorch_checkpoint},
    {".ckpt", pytorch_checkpoint},
    {".bin", pytorch_checkpoint},
    {".ptl", torch_script},
    {".torchscript", torch_script},
    {".pkl", python_pickle},
    {".pickle", python_pickle},
    {".joblib", python_pickle},
    {".keras", keras_archive},
    {".h5", hdf5_file},
    {".hdf5", hdf5_file},
    {".tflite", tensorflow_lite},
    {".pb", tensorflow_graph},
    {".pbtxt", tensorflow_graph},
    {".engine", tensorrt_engine},
    {".trt", tensorrt_engine},
    {".plan", tensorrt_engine},
    {".mlmodel", core_ml},
    {".mlpackage", core_ml},
    {".caffemodel", caffe_model},
    {".prototxt", caffe_model},
    {".msgpack", flax_weights},
    {".ipynb", python_notebook},
    {".zip", zip_archive},
    {".py", program_source},
    {".index", tensorflow_checkpoint},
}};

std::string stem_of(std::string_view name) {
  return std::filesystem::path(name).replace_extension().string();
}

std::string record_of(std::string_view program) {
  return fmt::format("python -m stowage record {} `batch` N -o step.json",
                     shell_word(std::string(program) + ":FUNCTION"));
}

// Before the options of other programs.
constexpr std::string_view dashes = "--";

constexpr std::string_view its_source =
    "it holds compiled or converted layers; the ONNX file or the program that it was made from is "
    "read: stowage check model.onnx, or python -m stowage record FILE.py:FUNCTION `batch` N -o "
    "step.json (docs/record.md)";

}  // namespace

std::optional<std::string_view> kind_by_name(std::string_view name) {
  const std::string lower = lower_case(name);
  const auto found = std::ranges::find_if(
      named_kinds, [&](const NamedKind& known) { return lower.ends_with(known.ending); });
  return found == named_kinds.end() ? std::nullopt : std::optional(found->kind);
}

std::string way_in(std::string_view kind, std::string_view name) {
  const bool is_file = name != "-";
  if (kind == program_source && name.ends_with(".py")) {
    return fmt::format(
        "{} runs one step of a model that a function of it returns, without a GPU; "
        "step.json is read (docs/record.md)",
        record_of(name));
  }
  if (kind == python_notebook && is_file) {
    return fmt::format(
        "jupyter nbconvert {}to script {} writes it as a program; then {} runs one "
        "step of it, and step.json is read (docs/record.md)",
        dashes, shell_word(name), record_of(stem_of(name) + ".py"));
  }
  if (kind == pytorch_checkpoint || kind == torch_script || kind == python_pickle ||
      kind == flax_weights) {
    return "it has weights; python -m stowage record FILE.py:FUNCTION `batch` N -o step.json "
           "records the program that makes their model, and step.json is read (docs/record.md)";
  }
  if (kind == keras_archive && is_file) {
    return fmt::format("unzip -p {} config.json > model.json writes its network, which is read",
                       shell_word(name));
  }
  if (kind == hdf5_file || kind == tensorflow_checkpoint) {
    return "of a Keras model, what keras.models.load_model(FILE, compile=False).to_json() returns "
           "is read (docs/keras.md)";
  }
  if (kind == tensorflow_lite && is_file) {
    return fmt::format(
        "python -m tf2onnx.convert {0}tflite {1} {0}output model.onnx writes its "
        "network, which is read",
        dashes, shell_word(name));
  }
  if (kind == tensorflow_graph && is_file) {
    return fmt::format(
        "python -m tf2onnx.convert {0}saved-model FOLDER {0}output model.onnx writes "
        "the network of the SavedModel that it lies in, which is read; of a Keras "
        "model what to_json() returns is read too (docs/keras.md)",
        dashes);
  }
  if (kind == tensorrt_engine || kind == core_ml || kind == openvino || kind == caffe_model) {
    return std::string(its_source);
  }
  if (kind == tar_archive && is_file) {
    return fmt::format("tar xf {} unpacks it; name the model in it", shell_word(name));
  }
  if (kind == zip_archive && is_file) {
    return fmt::format("unzip {} unpacks it; name the model in it", shell_word(name));
  }
  if (kind.ends_with("-compressed") && is_file) {
    const std::string_view program = kind.starts_with("gzip") ? "gzip"
                                     : kind.starts_with("xz") ? "xz"
                                     : kind.starts_with("bz") ? "bzip2"
                                                              : "zstd";
    if (kind_by_name(name) == tar_archive) return way_in(tar_archive, name);
    return fmt::format("{} -dc {} | stowage check - `gpu` NAME reads what it holds", program,
                       shell_word(name));
  }
  return "docs/model-description.md says how a model is described; stowage models lists those that "
         "came with the program";
}

std::optional<Diagnostic> foreign_folder(const std::string& folder) {
  std::error_code code;
  const std::filesystem::path path(folder);
  const auto has = [&](const char* file) { return std::filesystem::exists(path / file, code); };
  const auto mistake = [&](std::string_view kind, std::string hint) {
    return Diagnostic{
        .message = fmt::format("'{}' is the folder of {}, not a model's description", folder, kind),
        .hint = std::move(hint)};
  };
  if (has("saved_model.pb") || has("saved_model.pbtxt")) {
    return mistake("a TensorFlow SavedModel",
                   fmt::format("python -m tf2onnx.convert {0}saved-model {1} {0}output model.onnx "
                               "writes its network, which is read",
                               dashes, shell_word(folder)));
  }
  if (has("Manifest.json") && kind_by_name(folder) == core_ml) {
    return mistake(core_ml, std::string(its_source));
  }
  if (has("checkpoint")) {
    return mistake(tensorflow_checkpoint, way_in(tensorflow_checkpoint, folder));
  }
  return std::nullopt;
}

}  // namespace stowage
