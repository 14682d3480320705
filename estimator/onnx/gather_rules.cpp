// Gathering: rows of tables, elements by their places.
#include <algorithm>
#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

// Rows of a table that is a parameter of the model.
bool translate_embedding(Translation& translation, const OnnxNode& node, const OnnxValue& table,
                         const OnnxValue& indices) {
  LayerOutput places;
  const auto numbers = indices.numbers();
  const bool counts = numbers && indices.rank() == 2 && indices.type.shape[0] == Affine(1) &&
                      std::ranges::is_sorted(*numbers) && !numbers->empty() &&
                      numbers->front() == 0 &&
                      numbers->back() == static_cast<std::int64_t>(numbers->size()) - 1;
  if (counts) {
    const auto made = translation.layer(node, "positions", {},
                                        {{"length", static_cast<std::int64_t>(numbers->size())},
                                         {"at_most", table.type.shape[0].constant}});
    if (made) places = {*made, 0};
  }
  if (!places.valid()) places = translation.activation(indices);
  const auto made = translation.layer_with_weights(
      node, "embedding", {places},
      {{"count", table.type.shape[0].constant}, {"features", table.type.shape[1].constant}},
      {{"weight", &table}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

// Exporters write as_strided as a Gather from the flattened tensor, by positions that are computed
// from sizes. If it takes as many elements as there are, it is treated as a view.
bool is_view_by_places(const OnnxValue& x, const OnnxValue& indices) {
  return x.is_activation() && x.rank() == 1 && x.type.shape[0].slope != 0 &&
         !indices.is_activation() && element_count(indices.type.shape) == x.type.shape[0];
}

bool translate_gather(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& indices = translation.input(node, 1);
  if (is_view_by_places(x, indices)) {
    return translation.chain(node, x.layer, {{"reshape", {{"shape", indices.type.shape}}}});
  }
  const auto axis = axis_in(node.integer("axis", 0), x.rank());
  const auto type = infer_type(node, translation.inputs(node));
  if (!axis || !type) return false;
  if (x.is_parameter() && !x.turned && x.rank() == 2 && *axis == 0) {
    return translate_embedding(translation, node, x, indices);
  }
  const auto place = static_cast<std::int64_t>(*axis);
  const auto number = indices.integer();
  if (number && indices.rank() == 0 && x.type.shape[*axis].is_constant()) {
    const auto at = axis_in(*number, static_cast<std::size_t>(x.type.shape[*axis].constant));
    if (!at) return false;
    return translation.chain(node, translation.activation(x),
                             {{"slice",
                               {{"axis", place},
                                {"start", static_cast<std::int64_t>(*at)},
                                {"length", std::int64_t{1}}}},
                              {"reshape", {{"shape", type->shape}}}});
  }
  const bool is_list = indices.rank() == 1;
  const auto made = translation.layer(node, is_list ? "index_select" : "index",
                                      {translation.activation(x), translation.activation(indices)},
                                      {{"axis", place}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_gather_elements(Translation& translation, const OnnxNode& node) {
  const auto made = translation.layer(node, "gather",
                                      {translation.activation(translation.input(node, 0)),
                                       translation.activation(translation.input(node, 1))},
                                      {{"axis", node.integer("axis", 0)}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

// Indices of several axes in one tensor, which PyTorch takes as a tensor an axis: x[i, j].
bool translate_gather_nd(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& indices = translation.input(node, 1);
  constexpr std::int64_t most_axes = 4;  // of the row `index`
  if (!infer_type(node, translation.inputs(node)) || indices.is_activation()) return false;
  const std::int64_t axes = indices.type.shape.back().constant;
  const Shape places(indices.type.shape.begin(), indices.type.shape.end() - 1);
  const OnnxValue one_axis = constant_value({places, DataType::int64});
  if (axes == 1 && x.is_parameter() && !x.turned && x.rank() == 2) {
    return translate_embedding(translation, node, x, one_axis);
  }
  if (axes < 1 || axes > most_axes) {
    translation.refuse("it has more than 4 indexed axes");
    return false;
  }
  std::vector<LayerOutput> from{translation.activation(x)};
  for (std::int64_t i = 0; i < axes; ++i) {
    const auto made = translation.layer(node, "constant", {},
                                        {{"shape", places}, {"dtype", std::string("int64")}});
    if (!made) return false;
    from.push_back({*made, 0});
  }
  const auto made =
      translation.layer(node, "index", std::move(from), {{"axis", node.integer("batch_dims", 0)}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

}  // namespace

std::span<const OnnxRule> onnx_gather_rules() {
  static constexpr std::array rules{
      OnnxRule{"Gather", translate_gather},
      OnnxRule{"GatherElements", translate_gather_elements},
      OnnxRule{"GatherND", translate_gather_nd},
  };
  return rules;
}

}  // namespace stowage
