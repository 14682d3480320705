// Reductions over axes, and what picks along one.
#include <algorithm>
#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

bool translate_reduction(Translation& translation, const OnnxNode& node) {
  const auto axes = axes_of(node, translation.inputs(node));
  if (!axes) {
    translation.refuse("its axes are not constants");
    return false;
  }
  const OnnxValue& x = translation.input(node, 0);
  if (axes->empty() && node.integer("noop_with_empty_axes", 0) != 0) {
    translation.set_output(node, x);
    return true;
  }
  Attributes::Entries over{{"axes", *axes}, {"keep", node.integer("keepdims", 1) != 0}};
  const LayerOutput from = translation.activation(x);
  if (node.op == "ReduceSumSquare") {
    return translation.chain(node, from, {{"pow", {{"exponent", 2.0}}}, {"sum", std::move(over)}});
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> rows{
      {{"ReduceMean", "mean"},
       {"ReduceSum", "sum"},
       {"ReduceMax", "amax"},
       {"ReduceMin", "amin"},
       {"ReduceL2", "norm"},
       {"ReduceL1", "norm"}}};
  const auto row =
      std::ranges::find_if(rows, [&](const auto& one) { return one.first == node.op; });
  if (row == rows.end()) return false;
  if (node.op == "ReduceL1") over.emplace_back("p", 1.0);
  return translation.chain(node, from, {{std::string(row->second), std::move(over)}});
}

bool translate_extreme_place(Translation& translation, const OnnxNode& node) {
  return translation.chain(
      node, translation.activation(translation.input(node, 0)),
      {{node.op == "ArgMax" ? "argmax" : "argmin",
        {{"axis", node.integer("axis", 0)}, {"keep", node.integer("keepdims", 1) != 0}}}});
}

bool translate_running_sum(Translation& translation, const OnnxNode& node) {
  const auto axis = translation.input(node, 1).integer();
  if (!axis) return false;
  return translation.chain(node, translation.activation(translation.input(node, 0)),
                           {{"cumsum", {{"axis", *axis}}}});
}

bool translate_largest(Translation& translation, const OnnxNode& node) {
  const auto count = translation.input(node, 1).integer();
  if (!count) {
    translation.refuse("its number is not a constant");
    return false;
  }
  const auto made =
      translation.layer(node, "topk", {translation.activation(translation.input(node, 0))},
                        {{"count", *count},
                         {"axis", node.integer("axis", -1)},
                         {"largest", node.integer("largest", 1) != 0}});
  if (!made) return false;
  translation.set_output(node, *made, 0, 0);
  translation.set_output(node, *made, 1, 1);
  return true;
}

}  // namespace

std::span<const OnnxRule> onnx_reduction_rules() {
  static constexpr std::array rules{
      OnnxRule{"ReduceMean", translate_reduction},
      OnnxRule{"ReduceSum", translate_reduction},
      OnnxRule{"ReduceMax", translate_reduction},
      OnnxRule{"ReduceMin", translate_reduction},
      OnnxRule{"ReduceL1", translate_reduction},
      OnnxRule{"ReduceL2", translate_reduction},
      OnnxRule{"ReduceSumSquare", translate_reduction},
      OnnxRule{"ArgMax", translate_extreme_place},
      OnnxRule{"ArgMin", translate_extreme_place},
      OnnxRule{"CumSum", translate_running_sum},
      OnnxRule{"TopK", translate_largest},
  };
  return rules;
}

}  // namespace stowage
