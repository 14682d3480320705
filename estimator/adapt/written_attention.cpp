#include "estimator/adapt/written_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/adapt/graph_edit.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

constexpr std::string_view fused_row = "scaled_dot_product_attention";

bool is_fused(const Operator& op) { return op.row->name == fused_row; }

/// The row's attributes: its defaults, and `changes` in their places.
Attributes attributes_of(
    const OperatorRow& row,
    std::initializer_list<std::pair<std::string_view, AttributeValue>> changes) {
  Attributes attributes;
  for (const AttributeSpec& spec : row.attributes) {
    if (spec.default_value) attributes.set(spec.name, *spec.default_value);
  }
  for (const auto& [name, value] : changes) attributes.set(name, value);
  return attributes;
}

class WritingOut {
 public:
  explicit WritingOut(ModelGraph model)
      : masks_before_(first_reader(model)), edit_(std::move(model)) {}

  Result<ModelGraph> run() && {
    for (std::size_t i = 0; i < edit_.size(); ++i) {
      Operator& op = edit_.take(i);
      if (!is_fused(op)) continue;
      Operator attention = std::move(op);
      edit_.model().operators.pop_back();
      edit_.model().tensors[attention.outputs.front().index()].producer = {};
      const auto written = write_out(attention);
      if (!written) return tl::unexpected(written.error());
      edit_.redirect(attention.outputs.front(), *written);
    }
    return with_masks_in_front(std::move(edit_).finished());
  }

 private:
  /// The operator before which masks are made: the first attention, or the first of its region.
  static std::size_t first_reader(const ModelGraph& model) {
    const auto first = std::ranges::find_if(model.operators, is_fused);
    if (first == model.operators.end() || first->region < 0) {
      return static_cast<std::size_t>(first - model.operators.begin());
    }
    const auto of_region = std::ranges::find(model.operators, first->region, &Operator::region);
    return static_cast<std::size_t>(of_region - model.operators.begin());
  }

  [[nodiscard]] DataType type() { return float_type(edit_.model().precision); }
  [[nodiscard]] const TensorType& type_of(TensorId id) { return edit_.model().tensor(id).type; }

  Result<TensorId> put(const Operator& beside, std::string_view part, std::string_view row_name,
                       std::initializer_list<std::pair<std::string_view, AttributeValue>> changes,
                       std::vector<TensorId> inputs) {
    const OperatorRow& row = *find_operator(row_name);
    std::string name = part.empty() ? beside.name : fmt::format("{}.{}", beside.name, part);
    auto made = edit_.add(std::move(name), row, attributes_of(row, changes), std::move(inputs),
                          type(), beside);
    if (!made) return tl::unexpected(std::move(made.error()));
    if (part.empty()) edit_.model().operators.back().path = beside.path;
    return made->output;
  }

  /// Key or value with each head once for every query head that reads it (repeat_kv).
  Result<TensorId> repeated(const Operator& attention, TensorId heads, std::string_view part) {
    const Shape query = type_of(attention.inputs[0]).shape;
    const Shape own = type_of(heads).shape;
    if (query.size() != 4 || query[1] == own[1]) return heads;
    const std::int64_t groups = query[1].constant / own[1].constant;
    const Shape apart{own[0], own[1], 1, own[2], own[3]};
    const Shape wide{own[0], own[1], groups, own[2], own[3]};
    const Shape joined{own[0], query[1], own[2], own[3]};
    return put(attention, fmt::format("{}_groups", part), "reshape", {{"shape", apart}}, {heads})
        .and_then([&](TensorId grouped) {
          return put(attention, fmt::format("{}_wide", part), "expand", {{"shape", wide}},
                     {grouped});
        })
        .and_then([&](TensorId widened) {
          return put(attention, fmt::format("{}_repeated", part), "reshape", {{"shape", joined}},
                     {widened});
        });
  }

  /// A mask of numbers to add: as it is, or made of one of booleans.
  Result<TensorId> additive(const Operator& attention) {
    const TensorId mask = attention.inputs[3];
    if (is_floating_point(type_of(mask).type)) return mask;
    if (attention.attributes.integer("window") > 0) return causal_mask(attention);
    return put(attention, "additive_mask", "cast", {{"dtype", std::string(to_string(type()))}},
               {mask});
  }

  /// The mask of causal scores, one for all attentions of the same sizes.
  Result<TensorId> causal_mask(const Operator& attention) {
    const Shape& query = type_of(attention.inputs[0]).shape;
    const Shape& key = type_of(attention.inputs[1]).shape;
    const Affine queries = query[query.size() - 2], keys = key[key.size() - 2];
    const std::int64_t window = attention.attributes.integer("window");
    const auto known = std::ranges::find_if(masks_, [&](const Mask& mask) {
      return mask.queries == queries && mask.keys == keys && mask.window == window;
    });
    if (known != masks_.end()) return known->tensor;
    const bool of_samples =
        query.size() == 4 && attention.attributes.text("written_out") != "query";
    const Shape shape = of_samples ? Shape{query[0], 1, queries, keys} : Shape{queries, keys};
    auto made = put(attention, "causal_mask", "constant",
                    {{"shape", shape}, {"causal", true}, {"window", window}}, {});
    if (!made) return made;
    Operator& constant = edit_.model().operators.back();
    constant.region = -1;
    made_masks_.push_back(std::move(constant));
    edit_.model().operators.pop_back();
    masks_.push_back({queries, keys, window, *made});
    return made;
  }

  Result<TensorId> scores_of(const Operator& attention, TensorId query, TensorId key) {
    const std::string& style = attention.attributes.text("written_out");
    const double given = attention.attributes.real("scale");
    const auto features = static_cast<double>(type_of(query).shape.back().constant);
    const double factor = given > 0 ? given : 1 / std::sqrt(features);
    if (style == "query") {
      auto scaled = put(attention, "scaled_query", "scale", {{"factor", factor}}, {query});
      if (!scaled) return scaled;
      return put(attention, "scores", "matmul", {{"transpose_b", true}}, {*scaled, key});
    }
    auto product = put(attention, "scores", "matmul", {{"transpose_b", true}}, {query, key});
    if (!product) return product;
    return put(attention, "scaled", "scale", {{"factor", factor}, {"in_place", style == "product"}},
               {*product});
  }

  Result<TensorId> masked(const Operator& attention, TensorId scores) {
    Result<TensorId> result = scores;
    if (attention.inputs.size() > 3) {
      auto mask = additive(attention);
      if (!mask) return mask;
      result = put(attention, "masked", "add", {}, {*result, *mask});
    }
    if (!result || !attention.attributes.boolean("causal")) return result;
    auto mask = causal_mask(attention);
    if (!mask) return mask;
    return put(attention, "causal", "add", {}, {*result, *mask});
  }

  Result<TensorId> write_out(const Operator& attention) {
    auto key = repeated(attention, attention.inputs[1], "keys");
    if (!key) return key;
    auto value = repeated(attention, attention.inputs[2], "values");
    if (!value) return value;
    const double p = attention.attributes.real("dropout");
    const std::string& style = attention.attributes.text("written_out");
    const bool wide = style == "wide";
    const bool returned = wide || style == "scores";  // as transformers' functions return them
    return scores_of(attention, attention.inputs[0], *key)
        .and_then([&](TensorId scores) { return masked(attention, scores); })
        .and_then([&](TensorId scores) {
          return put(attention, "weights", "softmax",
                     {{"upcast", wide}, {"held", std::string(returned ? "layer" : "module")}},
                     {scores});
        })
        .and_then([&](TensorId weights) -> Result<TensorId> {
          if (p == 0) return weights;
          return put(attention, "kept", "dropout", {{"p", p}}, {weights});
        })
        .and_then([&](TensorId weights) {
          return put(attention, "", "matmul", {}, {weights, *value});
        });
  }

  /// "transformers GPT2LMHeadModel, eager attention": whose implementation it is now.
  static std::string renamed_source(std::string source) {
    const std::size_t at = source.find(fused_row);
    return at == std::string::npos ? source
                                   : source.replace(at, fused_row.size(), "eager attention");
  }

  ModelGraph with_masks_in_front(ModelGraph model) {
    model.source = renamed_source(std::move(model.source));
    const auto at = model.operators.begin() + static_cast<std::ptrdiff_t>(masks_before_);
    model.operators.insert(at, std::make_move_iterator(made_masks_.begin()),
                           std::make_move_iterator(made_masks_.end()));
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      for (const TensorId output : model.operators[i].outputs) {
        model.tensors[output.index()].producer = OperatorId::of(i);
      }
    }
    return model;
  }

  struct Mask {
    Affine queries, keys;
    std::int64_t window = 0;
    TensorId tensor;
  };

  std::size_t masks_before_;
  GraphEdit edit_;
  std::vector<Mask> masks_;
  std::vector<Operator> made_masks_;
};

}  // namespace

bool has_fused_attention(const ModelGraph& model) {
  return std::ranges::any_of(model.operators, is_fused);
}

Result<ModelGraph> with_written_out_attention(ModelGraph model) {
  if (!has_fused_attention(model)) return model;
  return WritingOut(std::move(model)).run();
}

}  // namespace stowage
