#include "estimator/adapt/chunked_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/adapt/graph_edit.hpp"
#include "estimator/adapt/named_layers.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

/// The operators at the end of the model that are replaced by parts.
struct LossTail {
  OperatorId loss, layer;
  TensorId target;                   ///< as the loss reads it, but for its shape
  std::vector<OperatorId> reshaped;  ///< what stands between; each is dropped if nothing else reads
};

bool only_reshapes(const Operator& op) {
  const std::string_view row = op.row->name;
  return row == "reshape" || row == "flatten" || row == "identity";
}

/// Whether the operator slices all positions but one, from `start` on: a causal model's own loss
/// does it to compare each position with the next label.
bool shifts_by_one(const ModelGraph& model, const Operator& op, std::int64_t start) {
  const Shape& whole = model.tensor(op.inputs.front()).type.shape;
  const Shape& cut = model.tensor(op.outputs.front()).type.shape;
  return op.row->name == "slice" && whole.size() > 1 && op.attributes.integer("axis") == 1 &&
         op.attributes.integer("start") == start && cut[1] + 1 == whole[1];
}

bool copies(const Operator& op) { return op.row->name == "contiguous" || op.row->name == "cast"; }

/// The tensor from which `tensor` was reshaped. The chunked loss replaces the model's own and gets
/// labels that the script has shifted, so the model's shift (from `start` on) and its copies are
/// removed too.
TensorId before_reshapes(const ModelGraph& model, TensorId tensor, std::int64_t start,
                         std::vector<OperatorId>& passed) {
  while (model.tensor(tensor).producer.valid()) {
    const OperatorId producer = model.tensor(tensor).producer;
    const Operator& op = model.op(producer);
    if (!only_reshapes(op) && !copies(op) && !shifts_by_one(model, op, start)) break;
    passed.push_back(producer);
    tensor = model.op(producer).inputs.front();
  }
  return tensor;
}

Result<void> check_loss(const ModelGraph& model, const Operator& loss) {
  if (loss.row->name != "cross_entropy") {
    return failure(Diagnostic{
        .message = fmt::format("a loss in chunks is a cross entropy, and that of '{}' is {}",
                               model.name, loss.row->name),
        .span = loss.span});
  }
  if (loss.attributes.real("label_smoothing") > 0 || loss.attributes.real("weight") != 1) {
    return failure(Diagnostic{.message = "a loss in chunks is a plain cross entropy, without "
                                         "label_smoothing and weight",
                              .span = loss.span});
  }
  return {};
}

Result<LossTail> loss_tail(const ModelGraph& model) {
  if (!model.loss.valid()) {
    return failure(fmt::format("'{}' has no loss to compute in chunks", model.name));
  }
  LossTail tail{.loss = model.tensor(model.loss).producer, .layer = {}, .target = {}};
  const Operator& loss = model.op(tail.loss);
  if (auto checked = check_loss(model, loss); !checked) return tl::unexpected(checked.error());
  const TensorId logits = before_reshapes(model, loss.inputs[0], 0, tail.reshaped);
  const OperatorId layer = model.tensor(logits).producer;
  if (!layer.valid() || !is_linear(model.op(layer))) {
    return failure(Diagnostic{
        .message =
            fmt::format("a loss in chunks reads an output layer's result, reshaped or shifted by "
                        "one position at most, and here it reads that of '{}'",
                        layer.valid() ? model.op(layer).name : model.tensor(logits).name),
        .span = loss.span});
  }
  tail.layer = layer;
  const std::size_t rank = model.tensor(logits).type.shape.size();
  const TensorId target = before_reshapes(model, loss.inputs[1], 1, tail.reshaped);
  Shape wanted = model.tensor(logits).type.shape;
  wanted.pop_back();
  if (rank < 2 || model.tensor(target).type.shape != wanted) {
    return failure(Diagnostic{
        .message = fmt::format("a loss in chunks has a target for each row of the logits {}, and "
                               "here they are {}",
                               to_string(model.tensor(logits).type.shape),
                               to_string(model.tensor(target).type.shape)),
        .span = loss.span});
  }
  tail.target = target;
  return tail;
}

/// The lengths of the parts into which torch.chunk cuts an axis.
std::vector<std::int64_t> chunk_lengths(std::int64_t length, std::int64_t chunks) {
  const std::int64_t each = (length + chunks - 1) / chunks;
  std::vector<std::int64_t> lengths;
  for (std::int64_t left = length; left > 0; left -= each) lengths.push_back(std::min(each, left));
  return lengths;
}

class ChunkingLoss {
 public:
  ChunkingLoss(ModelGraph model, const LossTail& tail, const ChunkedLossSettings& settings,
               std::vector<std::int64_t> lengths, std::int64_t axis)
      : loss_(model.op(tail.loss)),
        layer_(model.op(tail.layer)),
        target_(tail.target),
        settings_(settings),
        lengths_(std::move(lengths)),
        axis_(axis),
        dropped_(dropped_operators(model, tail)),
        edit_(std::move(model)) {}

  Result<ModelGraph> run() && {
    for (std::size_t i = 0; i < edit_.size(); ++i) {
      if (dropped_[i]) {
        edit_.drop(i);
      } else {
        edit_.take(i);
      }
    }
    std::vector<TensorId> losses;
    if (auto made = make_losses(losses); !made) return tl::unexpected(made.error());
    TensorId whole = losses.front();
    if (losses.size() > 1) {
      const auto sum = edit_.add(loss_.name, total_loss_row(), {}, losses, type(), loss_);
      if (!sum) return tl::unexpected(sum.error());
      whole = sum->output;
    }
    const TensorId output = logits_.back();
    ModelGraph model = std::move(edit_).finished();
    model.output = output;
    model.loss = whole;
    model.loss_in_model = false;
    model.releases_output = true;
    model.warnings.push_back(
        {.severity = Severity::note,
         .message =
             fmt::format("the loss is computed in {} chunks of {} rows a sample{}", lengths_.size(),
                         lengths_.front(), settings_.compiled ? ", compiled" : "")});
    return model;
  }

 private:
  [[nodiscard]] DataType type() { return float_type(edit_.model().precision); }

  /// The output layer, the loss, and the reshapes between them that no other operator reads.
  static std::vector<bool> dropped_operators(const ModelGraph& model, const LossTail& tail) {
    std::vector<bool> dropped(model.operators.size());
    dropped[tail.loss.index()] = dropped[tail.layer.index()] = true;
    for (std::size_t i = model.operators.size(); i-- > 0;) {
      if (std::find(tail.reshaped.begin(), tail.reshaped.end(), OperatorId::of(i)) ==
          tail.reshaped.end()) {
        continue;
      }
      dropped[i] =
          std::none_of(model.operators.begin(), model.operators.end(), [&](const Operator& reader) {
            const auto at = static_cast<std::size_t>(&reader - model.operators.data());
            return !dropped[at] &&
                   std::find(reader.inputs.begin(), reader.inputs.end(),
                             model.operators[i].outputs.front()) != reader.inputs.end();
          });
    }
    return dropped;
  }

  Result<std::vector<TensorId>> parts(std::string_view name, TensorId tensor) {
    if (lengths_.size() == 1) return std::vector<TensorId>{tensor};
    Attributes attributes;
    attributes.set("parts", std::int64_t{0});
    attributes.set("sizes", lengths_);
    attributes.set("axis", axis_);
    auto made = edit_.add(fmt::format("{}.{}", layer_.name, name), *find_operator("split"),
                          std::move(attributes), {tensor}, type(), layer_);
    if (!made) return tl::unexpected(std::move(made.error()));
    return std::move(made->outputs);
  }

  Result<TensorId> flat(std::string name, TensorId tensor) {
    Attributes attributes;
    attributes.set("start", std::int64_t{0});
    attributes.set("end", axis_);
    auto made = edit_.add(std::move(name), *find_operator("flatten"), std::move(attributes),
                          {tensor}, type(), loss_);
    if (!made) return tl::unexpected(std::move(made.error()));
    return made->output;
  }

  /// First the logits of all parts, then their losses, since the script builds the whole list
  /// first.
  Result<void> make_losses(std::vector<TensorId>& losses) {
    const auto hidden = parts("chunks", layer_.inputs.front());
    if (!hidden) return tl::unexpected(hidden.error());
    for (std::size_t i = 0; i < hidden->size(); ++i) {
      auto made =
          edit_.add_reader(fmt::format("{}.chunk{}", layer_.name, i), *layer_.row,
                           layer_.attributes, {(*hidden)[i]}, layer_.parameters, type(), layer_);
      if (!made) return tl::unexpected(std::move(made.error()));
      logits_.push_back(made->output);
    }
    const auto targets = parts("target_chunks", target_);
    if (!targets) return tl::unexpected(targets.error());
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      auto loss = loss_of(i, (*targets)[i]);
      if (!loss) return tl::unexpected(std::move(loss.error()));
      losses.push_back(*loss);
    }
    return {};
  }

  Result<TensorId> loss_of(std::size_t i, TensorId target) {
    const std::string name = fmt::format("{}.chunk{}", loss_.name, i);
    auto rows = flat(name + ".logits", logits_[i]);
    if (!rows) return rows;
    auto labels = flat(name + ".target", target);
    if (!labels) return labels;
    Attributes attributes = loss_.attributes;
    attributes.set("upcast", true);
    std::int64_t all = 0;
    for (const std::int64_t length : lengths_) all += length;
    attributes.set("weight", static_cast<double>(lengths_[i]) / static_cast<double>(all));
    const OperatorRow& row = settings_.compiled ? compiled_cross_entropy_row() : *loss_.row;
    auto made = edit_.add(name, row, std::move(attributes), {*rows, *labels}, type(), loss_);
    if (!made) return tl::unexpected(std::move(made.error()));
    return made->output;
  }

  const Operator loss_, layer_;
  TensorId target_;
  ChunkedLossSettings settings_;
  std::vector<std::int64_t> lengths_;
  std::int64_t axis_;
  std::vector<bool> dropped_;
  GraphEdit edit_;
  std::vector<TensorId> logits_;
};

}  // namespace

Result<ModelGraph> with_chunked_loss(ModelGraph model, const ChunkedLossSettings& settings) {
  auto tail = loss_tail(model);
  if (!tail) return tl::unexpected(std::move(tail.error()));
  const Shape& shape = model.tensor(model.op(tail->layer).inputs.front()).type.shape;
  const Affine& length = shape[shape.size() - 2];
  if (shape.size() < 3 || !length.is_constant() || length.constant < 1) {
    return failure(
        Diagnostic{.message = fmt::format("a loss in chunks cuts sequences [batch, seq, features], "
                                          "and the output layer of '{}' reads {}",
                                          model.name, to_string(shape)),
                   .span = model.op(tail->layer).span});
  }
  std::vector<std::int64_t> lengths = chunk_lengths(length.constant, settings.chunks);
  const auto axis = static_cast<std::int64_t>(shape.size()) - 2;
  return ChunkingLoss(std::move(model), *tail, settings, std::move(lengths), axis).run();
}

}  // namespace stowage
