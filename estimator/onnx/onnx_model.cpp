#include "estimator/onnx/onnx_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "estimator/base/cure.hpp"
#include "estimator/import/choose_loss.hpp"
#include "estimator/import/unknown_operators.hpp"
#include "estimator/onnx/constant_weights.hpp"
#include "estimator/onnx/exporter_rewrites.hpp"
#include "estimator/onnx/first_concats.hpp"
#include "estimator/onnx/graph_inputs.hpp"
#include "estimator/onnx/in_place.hpp"
#include "estimator/onnx/inline_functions.hpp"
#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

Diagnostic of_file(const std::string& file, std::string message, std::string hint = {}) {
  return {.message = std::move(message),
          .span = {.source = std::make_shared<const SourceText>(SourceText{file, ""})},
          .hint = std::move(hint)};
}

Diagnostics placed_in(const std::string& file, Diagnostics mistakes) {
  for (Diagnostic& mistake : mistakes) {
    if (!mistake.span.source) mistake.span = of_file(file, "").span;
  }
  return mistakes;
}

Diagnostic onnx_note(std::string message) {
  return {.severity = Severity::note, .message = std::move(message)};
}

Result<OnnxFile> read_whole(const FileHead& file_head) {
  if (file_head.size > largest_onnx_file) {
    return failure(of_file(file_head.argument,
                           "the file is larger than 2 GB, which protobuf cannot be",
                           "save it with external data: onnx.save_model(model, path, "
                           "save_as_external_data=True)"));
  }
  auto source = file_head.text ? Result<ByteSource>(ByteSource(file_head.text))
                               : ByteSource::open(file_head.argument, file_head.size);
  if (!source) return tl::unexpected(std::move(source.error()));
  const auto at_byte = [&](const BrokenFile& broken, std::string hint) {
    return failure(of_file(file_head.argument,
                           fmt::format("byte {}: {}", broken.offset(), broken.what()),
                           std::move(hint)));
  };
  OnnxFile file;
  try {
    file = read_onnx_file(*source);
  } catch (const BrokenFile& broken) {
    return at_byte(
        broken, "is the file whole? onnx.checker.check_model says what else may be wrong with it");
  }
  try {
    inline_functions(file);
  } catch (const BrokenFile& broken) {
    return at_byte(broken, "");
  }
  return file;
}

class ModelMaker {
 public:
  ModelMaker(const FileHead& file_head, const ImportOptions& options, OnnxFile file)
      : file_head_(file_head), options_(options), file_(std::move(file)) {}

  Result<ImportedModel> make() {
    const auto in_place = asked_in_place();
    if (!in_place) return refused(in_place.error());
    ImportOptions of_dimensions = options_;
    of_dimensions.values.erase("in_place");
    auto inputs = read_graph_inputs(file_.graph, of_dimensions);
    if (!inputs) return refused(std::move(inputs.error()));
    notes_ = std::move(inputs->notes);
    make_constant_weights_initialisers(file_.graph, is_of_pytorch());
    if (is_of_pytorch()) note_joints(restore_first_concats(file_.graph));
    Translation translation(file_.graph, inputs->symbols, file_head_.argument);
    translation.fixed_batch = inputs->fixed_batch;
    LayerList& layers = translation.layers();
    for (const auto& [name, type] : inputs->tensors) {
      const LayerOutput input = layers.add_input(name, type);
      translation.set_value(name,
                            {.kind = OnnxValue::Kind::activation, .type = type, .layer = input});
    }
    set_initialisers(translation);
    translation.run();
    if (!translation.mistakes().empty()) return refused(std::move(translation.mistakes()));
    note_restored(translation.restored_norms);
    note_patterns(find_patterns(layers, translation.causal_masks, is_of_pytorch()));

    std::vector<LayerOutput> outputs;
    for (const OnnxValueInfo& output : file_.graph.outputs) {
      const OnnxValue* value = translation.find(output.name);
      if (value != nullptr && value->is_activation()) outputs.push_back(value->layer);
    }
    if (outputs.empty())
      return refused({{.message = "no output of the graph depends on its inputs"}});
    if (in_place->value_or(is_of_pytorch())) {
      note_overwriting(overwrite_inputs(layers, outputs), !in_place->has_value());
    }
    DescriptionFrame frame{.model = std::filesystem::path(file_head_.argument).stem().string(),
                           .source = source_text(),
                           .output = outputs[0]};
    if (inputs->seq > 0) frame.symbols.emplace_back("seq", inputs->seq);
    auto losses = choose_losses(layers, outputs, options_.loss, frame);
    if (!losses) return refused(std::move(losses.error()));
    take(*std::move(losses));
    auto counted =
        count_unknown_operators(layers, frame, options_.allow_unknown, translation.reasons);
    if (!counted) return refused(std::move(counted.error()));
    take(*std::move(counted));
    if (is_of_pytorch()) {
      note_separated(separate_merged_vectors(layers, needed_layers(layers, frame)));
    }
    tie_shared_parameters(layers, frame);
    if (const auto precision = usual_precision()) frame.train.emplace_back("precision", *precision);
    return ImportedModel{.description = std::make_shared<const SourceText>(
                             SourceText{file_head_.argument, write_description(layers, frame)}),
                         .notes = std::move(notes_)};
  }

 private:
  tl::unexpected<Diagnostics> refused(Diagnostics mistakes) const {
    return tl::unexpected(placed_in(file_head_.argument, std::move(mistakes)));
  }
  void take(Diagnostics more) {
    notes_.insert(notes_.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  }

  // The argument `in_place`; absent: it is not given.
  [[nodiscard]] Result<std::optional<bool>> asked_in_place() const {
    const auto given = options_.values.find("in_place");
    if (given == options_.values.end()) return std::nullopt;
    if (given->second == "true" || given->second == "false") return given->second == "true";
    return failure(fmt::format("'in_place' takes true or false, not '{}'", given->second));
  }
  [[nodiscard]] bool is_of_pytorch() const { return file_.producer == "pytorch"; }

  void note_overwriting(const OverwritingLayers& found, bool is_assumed) {
    if (!is_assumed || found.activations == 0) return;
    const auto counted = [](int count, std::string_view what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    std::string layers = counted(found.activations, "activation");
    if (found.sums > 0) layers += " and " + counted(found.sums, "sum");
    const bool is_one = found.activations + found.sums == 1;
    Diagnostic note =
        onnx_note(fmt::format("{} {} taken to overwrite {} input, as in PyTorch's image networks; "
                              "the file does not say it",
                              layers, is_one ? "is" : "are", is_one ? "its" : "their"));
    note.hint = hint_of(Cure::results_apart);
    notes_.push_back(std::move(note));
  }

  [[nodiscard]] std::string source_text() const {
    return fmt::format("ONNX opset {}{}{}", file_.opset, file_.producer.empty() ? "" : ", by ",
                       file_.producer);
  }

  // Buffers and constants of a module, as torch.export and transformers call them: no parameters.
  static bool is_buffer(std::string_view name) {
    constexpr std::array<std::string_view, 4> parts{"inv_freq", "lifted_tensor", "_tensor_constant",
                                                    "position_ids"};
    return std::ranges::any_of(
        parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
  }
  // Zeros into which a mask is scattered.
  [[nodiscard]] std::set<std::string_view> scattered() const {
    std::set<std::string_view> names;
    for (const OnnxNode& node : file_.graph.nodes) {
      if (node.op.starts_with("Scatter")) names.insert(node.inputs.begin(), node.inputs.end());
    }
    return names;
  }

  // Real numbers are parameters, whole ones constants.
  void set_initialisers(Translation& translation) const {
    const std::set<std::string_view> masks = scattered();
    for (std::size_t i = 0; i < file_.graph.initializers.size(); ++i) {
      const OnnxTensor& tensor = file_.graph.initializers[i];
      const auto type = data_type_of(tensor.type);
      if (!type || tensor.dims.size() > most_onnx_axes) continue;
      OnnxValue value = constant_value({Shape(tensor.dims.begin(), tensor.dims.end()), *type});
      value.integers.assign(tensor.integers.begin(), tensor.integers.end());
      value.reals = tensor.reals;
      if (!tensor.has_numbers) {
        value.integers.clear();
        value.reals.clear();
      }
      if (is_floating_point(*type) && !masks.contains(tensor.name) &&
          !(is_of_pytorch() && is_buffer(tensor.name))) {
        value.kind = OnnxValue::Kind::parameter;
        value.tensor = static_cast<int>(i);
      }
      translation.set_value(tensor.name, std::move(value));
    }
  }

  void note_joints(int joints) {
    if (joints == 0) return;
    notes_.push_back(onnx_note(fmt::format(
        "{} {} with a joint of one tensor, which the exporter took away, and {} it here",
        joints == 1 ? std::string("a growing list") : fmt::format("{} growing lists", joints),
        joints == 1 ? "began" : "each began", joints == 1 ? "has" : "have")));
  }
  void note_restored(int norms) {
    if (norms == 0) return;
    notes_.push_back(onnx_note(fmt::format(
        "{} that the exporter folded into {} put back",
        norms == 1 ? std::string("a batch norm") : fmt::format("{} batch norms", norms),
        norms == 1 ? "the convolution before it is" : "the convolutions before them are")));
  }
  void note_separated(int layers) {
    if (layers == 0) return;
    notes_.push_back(onnx_note(fmt::format(
        "{} parameters that are equal, which the exporter made one, and {} their own here",
        layers == 1 ? std::string("a layer has") : fmt::format("{} layers have", layers),
        layers == 1 ? "it has" : "they have")));
  }

  void note_patterns(const FoundPatterns& found) {
    if (found.attentions == 0) return;
    notes_.push_back(onnx_note(
        fmt::format("{} written in single operators {} taken for PyTorch's fused attention",
                    found.attentions == 1 ? std::string("an attention")
                                          : fmt::format("{} attentions", found.attentions),
                    found.attentions == 1 ? "is" : "are")));
  }

  // The format of most initialisers.
  [[nodiscard]] std::optional<std::string> usual_precision() const {
    struct Count {
      OnnxType type;
      std::string_view precision;
      double elements = 0;
    };
    std::array<Count, 4> counts{{{OnnxType::float32, "fp32"},
                                 {OnnxType::float16, "fp16"},
                                 {OnnxType::bfloat16, "bf16"},
                                 {OnnxType::float64, "fp64"}}};
    for (const OnnxTensor& tensor : file_.graph.initializers) {
      double elements = 1;
      for (const std::int64_t extent : tensor.dims) elements *= static_cast<double>(extent);
      for (Count& count : counts) {
        if (static_cast<int>(count.type) == tensor.type) count.elements += elements;
      }
    }
    const Count* most = counts.data();
    for (const Count& count : counts) {
      if (count.elements > most->elements) most = &count;
    }
    if (most->type == OnnxType::float32) return std::nullopt;
    return std::string(most->precision);
  }

  const FileHead& file_head_;
  const ImportOptions& options_;
  OnnxFile file_;
  Diagnostics notes_;
};

}  // namespace

// `ir_version`, field 1 and a varint, stands first: protobuf writes fields in their order.
bool is_onnx_model(const FileHead& file_head) {
  const std::string& head = file_head.first_bytes;
  constexpr char ir_version_tag = '\x08';
  constexpr char most_ir = 64;
  constexpr unsigned last_field = 26;
  if (head.size() < 4 || head[0] != ir_version_tag || head[1] < 1 || head[1] > most_ir)
    return false;
  const auto tag = static_cast<unsigned char>(head[2]);
  const unsigned type = tag & 7U;
  return (type == 0 || type == 2) && (tag >> 3U) >= 2 && (tag >> 3U) <= last_field;
}

Result<ImportedModel> import_onnx_model(const FileHead& file_head, const ImportOptions& options) {
  auto file = read_whole(file_head);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (file->ir_version < oldest_ir) {
    return failure(of_file(file_head.argument,
                           fmt::format("its IR version is {}, and {} is the oldest that is read",
                                       file->ir_version, oldest_ir)));
  }
  try {
    return ModelMaker(file_head, options, *std::move(file)).make();
  } catch (const NotAffine& e) {
    return failure(of_file(file_head.argument,
                           fmt::format("a size is not linear in the batch: {}", e.what())));
  } catch (const ArithmeticOverflow&) {
    return failure(of_file(file_head.argument, "a size leaves the 64-bit range"));
  }
}

}  // namespace stowage
