#include "estimator/import/choose_loss.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

class LossChoice {
 public:
  LossChoice(LayerList& layers, DescriptionFrame& frame) : layers_(layers), frame_(frame) {}

  [[nodiscard]] std::string usual(const LayerOutput& output) const {
    const ImportedLayer& last = layers_.at(output.layer);
    const Shape& shape = layers_.type(output).shape;
    if (last.is("softmax")) return "cross_entropy";
    if (last.is("log_softmax")) return "nll";
    if (last.is("sigmoid")) return "bce";
    constexpr std::size_t image_rank = 4;
    if (shape.size() == 2) return shape[1] == Affine(1) ? "mse" : "cross_entropy";
    if (shape.size() == 3 && reads_tokens()) return "cross_entropy";
    if (shape.size() == image_rank && !is_shape_of_an_input(shape)) return "cross_entropy";
    return "mse";
  }

  /// Errors: a sentence.
  tl::expected<void, std::string> add(LayerOutput output, const std::string& row) {
    const ImportedLayer& last = layers_.at(output.layer);
    const bool of_classes = row == "cross_entropy" || row == "nll";
    if (row == "cross_entropy" && last.is("softmax")) output = last.from[0];
    const TensorType& type = layers_.type(output);
    if (!of_classes) {
      frame_.losses.push_back(
          {row, {output, layers_.add_input("target", {type.shape, type.type})}});
      return {};
    }
    if (type.shape.size() < 2) return tl::unexpected(fmt::format("{} wants classes", row));
    if (type.shape.size() == 3) return add_of_positions(output, row);
    Shape targets = type.shape;
    targets.erase(targets.begin() + 1);
    frame_.losses.push_back(
        {row, {output, layers_.add_input("target", {targets, DataType::int64})}});
    return {};
  }

 private:
  tl::expected<void, std::string> add_of_positions(LayerOutput output, const std::string& row) {
    const Shape shape = layers_.type(output).shape;
    const LayerOutput target =
        layers_.add_input("target", {Shape{shape[0], shape[1]}, DataType::int64});
    try {
      const Affine positions = shape[0] * shape[1];
      auto logits =
          layers_.add("reshape", "logits", {output}, {{"shape", Shape{positions, shape[2]}}});
      if (!logits) return tl::unexpected(logits.error());
      auto targets = layers_.add("reshape", "targets", {target}, {{"shape", Shape{positions}}});
      if (!targets) return tl::unexpected(targets.error());
      frame_.losses.push_back({row, {{*logits, 0}, {*targets, 0}}});
    } catch (const NotAffine& e) {
      return tl::unexpected(fmt::format("a size is not linear in the batch: {}", e.what()));
    }
    if (row == "cross_entropy") {
      frame_.losses.back().given.emplace_back("upcast", true);
      frame_.train.emplace_back("loss_in_model", "true");
    }
    return {};
  }

  [[nodiscard]] bool reads_tokens() const {
    for (int i = 0; i < layers_.count(); ++i) {
      const ImportedLayer& layer = layers_.at(i);
      if (layer.is_input && !is_floating_point(layer.outputs[0].type)) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_shape_of_an_input(const Shape& shape) const {
    for (int i = 0; i < layers_.count(); ++i) {
      const ImportedLayer& layer = layers_.at(i);
      if (layer.is_input && layer.outputs[0].shape == shape) return true;
    }
    return false;
  }

  LayerList& layers_;
  DescriptionFrame& frame_;
};

Diagnostic note_of_loss(std::string message, std::string hint = {}) {
  return {.severity = Severity::note, .message = std::move(message), .hint = std::move(hint)};
}

}  // namespace

Result<Diagnostics> choose_losses(LayerList& layers, std::span<const LayerOutput> outputs,
                                  const std::optional<std::string>& wanted,
                                  DescriptionFrame& frame) {
  if (wanted == "none") return Diagnostics{};
  const LayerOutput first = outputs[0];
  const TensorType type = layers.type(first);
  if (!is_floating_point(type.type) || !layers.at(first.layer).trains) {
    if (wanted) return failure("this model's output has no gradient, so it takes no loss");
    return Diagnostics{
        note_of_loss("nothing leads from parameters to the output, so the model is "
                     "not trained: inference alone")};
  }
  LossChoice choice(layers, frame);
  const std::string row = wanted.value_or(choice.usual(first));
  const std::string_view last =
      layers.at(first.layer).row != nullptr ? layers.at(first.layer).row->name : std::string_view();
  for (const LayerOutput& output : outputs) {
    if (output != first && layers.type(output).shape != type.shape) continue;
    if (const auto added = choice.add(output, row); !added) {
      return failure(fmt::format("the loss {} does not suit the output {}: {}", row,
                                 to_string(type.shape), added.error()));
    }
  }
  if (wanted) return Diagnostics{};
  std::string text =
      fmt::format("the file has no loss: {} of the output {} is taken", row, to_string(type.shape));
  if (last == "softmax" && row == "cross_entropy") {
    text = fmt::format(
        "the file has no loss: {} of what the last softmax reads is taken, and that "
        "softmax is not run in training",
        row);
  }
  return Diagnostics{note_of_loss(std::move(text), hint_of(Cure::another_loss))};
}

}  // namespace stowage
