// The steps of grouped_mm_experts_forward and of its backward (experts_lowering.hpp).
#include "estimator/catalogue/experts_lowering.hpp"

#include <fmt/format.h>

#include "estimator/base/data_type.hpp"
#include "estimator/step/gathered_arguments.hpp"

namespace stowage {

ExpertSizes expert_sizes(const Attributes& attributes, const Shape& rows, const Shape& down) {
  const std::int64_t chosen = attributes.integer("chosen");
  const bool clamped = attributes.text("form") == "clamped";
  const std::int64_t first = down[1].constant, second = down[2].constant;
  return {.tokens = rows[0],
          .pairs = rows[0] * Affine(chosen),
          .hidden = clamped ? second : first,
          .inner = clamped ? first : second,
          .experts = down[0].constant,
          .chosen = chosen,
          .clamped = clamped};
}

TensorView ExpertsLowering::narrowed(const TensorView& from, DataType type, std::string_view name,
                                     std::vector<StorageId> holds) {
  if (from.type == type) return from;
  TensorView to = gradient(name, from.shape, type);
  call(Kernel::cast, fmt::format("backward.{}", name), {from}, {to}, {.holds = std::move(holds)});
  return to;
}

namespace {

/// Of a product with the weights of routed experts, of which those are read that a pair chose.
NodeExtras gathering(std::int64_t first, Affine flops) {
  NodeExtras extras{.flops = flops};
  extras.attributes.set(gathers_attribute, first);
  return extras;
}

}  // namespace

/// The steps of grouped_mm_experts_forward: choose the experts, sort the pairs of tokens and
/// experts by expert, gather their rows, multiply them up, gate them, multiply them down, weight
/// them, restore the order, and sum over a token's experts.
void ExpertsLowering::forward() {
  if (lowering_.attributes().boolean("fused") && !lowering_.needs_gradient()) {
    return forward_fused();
  }
  const TensorView x = lowering_.input(0), up = lowering_.input(2), down = lowering_.input(3);
  const auto [weights, choice] = choose();
  const Shape row{n_.pairs};
  const TensorView experts = make("sorted", row, DataType::int64);
  const TensorView order = make("order", row, DataType::int64);
  call(Kernel::custom_forward, "sort", {choice}, {experts, order});
  const TensorView places = make("places", row, DataType::int64);
  call(Kernel::custom_forward, "places", {order}, {places});
  lowering_.save("places", places);
  TensorView selected = make("selected", pairs(n_.hidden), x.type);
  call(Kernel::custom_forward, "selected", {x, places}, {selected});
  const TensorView factors = make("factors", {n_.pairs, 1}, weights.type);
  call(Kernel::custom_forward, "factors", {weights, order}, {factors});
  lowering_.save("order", order);
  const TensorView narrow = make("sorted.narrow", row, DataType::int32);
  call(Kernel::cast, "sorted.narrow", {experts}, {narrow});
  const TensorView counts = make("counts", {n_.experts}, DataType::int32);
  call(Kernel::custom_forward, "counts", {narrow}, {counts});
  const TensorView offsets = make("offsets", {n_.experts}, DataType::int32);
  call(Kernel::custom_forward, "offsets", {counts}, {offsets});
  lowering_.save("offsets", offsets);
  selected = lowering_.cast(selected, up.type, "selected.cast");
  lowering_.save("selected", selected);
  TensorView biases;  // the function's variable, of the last product
  if (n_.clamped) {
    biases = bias_of_pairs(4, experts, "up.biases", {});
    lowering_.save("sorted", experts);
  }
  const TensorView projected = make("projected", pairs(2 * n_.inner), up.type);
  call(Kernel::custom_forward, "up", {selected, up, offsets}, {projected},
       gathering(1, product_flops(n_.hidden, 2 * n_.inner)));
  lowering_.save("up", up);
  if (n_.clamped) call(Kernel::accumulate, "up.biased", {projected, biases}, {projected});
  const TensorView inner = apply_gate(projected);
  if (n_.clamped) biases = bias_of_pairs(5, experts, "down.biases", {biases.storage});
  const TensorView results = make("results", pairs(n_.hidden), down.type);
  call(Kernel::custom_forward, "down", {inner, down, offsets}, {results},
       gathering(1, product_flops(n_.inner, n_.hidden)));
  lowering_.save("down", down);
  if (n_.clamped) call(Kernel::accumulate, "down.biased", {results, biases}, {results});
  const DataType mixed = promoted(results.type, factors.type);
  const TensorView weighted = make("weighted", pairs(n_.hidden), mixed);
  call(Kernel::multiply, "weighted", {results, factors}, {weighted});
  lowering_.save("results", results);
  lowering_.save("factors", factors);
  const TensorView inverse = make("inverse", row, DataType::int64);
  const TensorView numbers = make("numbers", row, DataType::int64);
  call(Kernel::iota, "numbers", {}, {numbers}, {.holds = {inverse.storage}});
  call(Kernel::custom_forward, "inverse", {order, numbers}, {inverse});
  lowering_.save("inverse", inverse);
  const TensorView restored = make("restored", pairs(n_.hidden), mixed);
  call(Kernel::custom_forward, "restored", {weighted, inverse}, {restored});
  // Variables of the function, and of the block that called it, live to its end.
  std::vector<StorageId> variables{experts.storage,  narrow.storage,  counts.storage,
                                   restored.storage, weights.storage, lowering_.input(1).storage};
  if (n_.clamped) variables.push_back(biases.storage);
  const TensorView y = lowering_.output_type().type == mixed
                           ? lowering_.new_output()
                           : make("sum", lowering_.output_type().shape, mixed);
  call(Kernel::reduce, "sum", {restored}, {y}, {.holds = variables});
  if (lowering_.output_type().type != mixed) {
    call(Kernel::cast, "forward", {y}, {lowering_.new_output()}, {.holds = variables});
  }
}

// Mxfp4GptOssMLP.forward of integrations/mxfp4.py and vLLM's fused_marlin_moe: the pairs' order
// both ways, the product up, the gate, the product down, and the sum of a token's experts.
// transformers' kernel gates within the first product; Marlin's result of it is counted.
void ExpertsLowering::forward_fused() {
  const TensorView x = lowering_.input(0), up = lowering_.input(2), down = lowering_.input(3);
  const auto [weights, choice] = choose();
  const Shape row{n_.pairs};
  const TensorView order = make("order", row, DataType::int32);
  const TensorView inverse = make("inverse", row, DataType::int32);
  const TensorView factors = make("factors", row, weights.type);
  call(Kernel::custom_forward, "order", {choice, weights}, {order, inverse, factors});
  const TensorView projected = make("projected", pairs(2 * n_.inner), x.type);
  call(Kernel::custom_forward, "up", {x, order, up, lowering_.input(4)}, {projected},
       gathering(2, product_flops(n_.hidden, 2 * n_.inner)));
  const TensorView gated = make("gated", pairs(n_.inner), x.type);
  call(Kernel::custom_forward, "gated", {projected}, {gated});
  const TensorView results = make("results", pairs(n_.hidden), x.type);
  call(Kernel::custom_forward, "down", {gated, inverse, factors, down, lowering_.input(5)},
       {results}, gathering(3, product_flops(n_.inner, n_.hidden)));
  call(Kernel::reduce, "sum", {results}, {lowering_.new_output()},
       {.holds = {x.storage, order.storage, inverse.storage, factors.storage}});
}

/// Autograd's nodes in reverse order: the sum and the restored order, the weights, the product
/// down, the gate, the product up, the gathered rows, and the routing weights. Gradients are
/// delivered as soon as they are complete.
void ExpertsLowering::backward() {
  lowering_.hold_by_hand();
  const TensorView up = lowering_.input(2), down = lowering_.input(3);
  const TensorView dy = lowering_.output_gradient();
  const DataType mixed = promoted(down.type, lowering_.saved("factors").type);
  const Shape wide = pairs(n_.hidden), inner = pairs(n_.inner);
  TensorView d_sum = dy;
  if (dy.type != mixed) {
    d_sum = gradient("grad_sum", dy.shape, mixed);
    call(Kernel::cast, "backward.sum", {dy}, {d_sum});
  }
  const TensorView repeated = gradient("grad_repeated", wide, mixed);
  call(Kernel::copy, "backward.repeated", {d_sum}, {repeated});
  const TensorView zeros = gradient("grad_weighted.zeros", wide, mixed);
  call(Kernel::fill, "backward.weighted.zeros", {}, {zeros}, {.holds = {repeated.storage}});
  const TensorView d_weighted = gradient("grad_weighted", wide, mixed);
  call(Kernel::custom_backward, "backward.weighted", {zeros, repeated, lowering_.saved("inverse")},
       {d_weighted});
  const TensorView results = lowering_.saved("results"), factors = lowering_.saved("factors");
  TensorView d_results = gradient("grad_results.wide", wide, mixed);
  call(Kernel::multiply, "backward.results", {d_weighted, factors}, {d_results});
  const TensorView product = gradient("grad_factors.product", wide, mixed);
  call(Kernel::multiply, "backward.factors.product", {d_weighted, results}, {product},
       {.holds = {d_results.storage}});
  const TensorView d_factors = gradient("grad_factors", factors.shape, factors.type);
  call(Kernel::sum_to_shape, "backward.factors", {product}, {d_factors},
       {.holds = {d_weighted.storage, factors.storage, results.storage, d_results.storage}});
  d_results = narrowed(d_results, results.type, "grad_results", {});
  const TensorView offsets = lowering_.saved("offsets");
  const Affine flops_down = product_flops(n_.inner, n_.hidden);
  const TensorView gated = lowering_.saved("gated");
  if (lowering_.input_needs_gradient(3)) {
    const TensorView d_down = lowering_.new_input_gradient(3);
    call(Kernel::custom_backward, "backward.down.weights", {gated, d_results, offsets}, {d_down},
         {.flops = flops_down});
    lowering_.give_input_gradient(3, d_down);
    lowering_.deliver_gradients();
  }
  const TensorView d_gated = gradient("grad_gated", inner, gated.type);
  call(Kernel::custom_backward, "backward.down", {d_results, down, offsets}, {d_gated},
       {.holds = {gated.storage}, .flops = flops_down});
  if (n_.clamped) give_bias_gradient(5, d_results, "down.biases", {d_gated.storage});
  const TensorView d_projected = gate_gradient(d_gated);
  const TensorView selected = lowering_.saved("selected");
  const Affine flops_up = product_flops(n_.hidden, 2 * n_.inner);
  if (lowering_.input_needs_gradient(2)) {
    const TensorView d_up = lowering_.new_input_gradient(2);
    call(Kernel::custom_backward, "backward.up.weights", {selected, d_projected, offsets}, {d_up},
         {.flops = flops_up});
    lowering_.give_input_gradient(2, d_up);
    lowering_.deliver_gradients();
  }
  TensorView d_selected = gradient("grad_selected", wide, selected.type);
  call(Kernel::custom_backward, "backward.up", {d_projected, up, offsets}, {d_selected},
       {.holds = {selected.storage, d_factors.storage}, .flops = flops_up});
  if (n_.clamped) {
    give_bias_gradient(4, d_projected, "up.biases", {d_selected.storage, d_factors.storage});
  }
  const DataType x_type = lowering_.input(0).type;
  d_selected = narrowed(d_selected, x_type, "grad_selected.narrow", {d_factors.storage});
  const Shape few{n_.tokens, n_.chosen};
  const TensorView weight_zeros = gradient("grad_weights.zeros", few, factors.type);
  call(Kernel::fill, "backward.weights.zeros", {}, {weight_zeros},
       {.holds = {d_selected.storage, d_factors.storage}});
  const TensorView d_weights = gradient("grad_weights", few, factors.type);
  call(Kernel::custom_backward, "backward.weights",
       {weight_zeros, d_factors, lowering_.saved("order")}, {d_weights},
       {.holds = {d_selected.storage}});
  if (lowering_.input_needs_gradient(0)) {
    const TensorView row_zeros = gradient("grad_rows.zeros", dy.shape, x_type);
    call(Kernel::fill, "backward.rows.zeros", {}, {row_zeros},
         {.holds = {d_selected.storage, d_weights.storage}});
    const TensorView dx = lowering_.new_input_gradient(0);
    call(Kernel::custom_backward, "backward.rows",
         {row_zeros, d_selected, lowering_.saved("places")}, {dx}, {.holds = {d_weights.storage}});
    lowering_.give_input_gradient(0, dx);
    lowering_.deliver_gradients();
  }
  if (lowering_.input_needs_gradient(1)) weight_gradients(d_weights);
}

}  // namespace stowage
