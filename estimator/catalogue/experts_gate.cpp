// What stands between the two products of grouped experts: the biases and the gate.
#include <fmt/format.h>

#include "estimator/catalogue/experts_lowering.hpp"

namespace stowage {

namespace {

/// Every other feature of [pairs, 2 inner]: the gates, or with `odd` what they gate.
TensorView every_other(const TensorView& projected, bool odd) {
  TensorView view = sliced(projected, 1, odd ? 1 : 0, projected.shape[1] + Affine(odd ? -1 : 0));
  view.shape[1] = quotient(projected.shape[1], 2);
  view.strides[1] = Affine(2);
  view.is_view = true;
  return view;
}

}  // namespace

TensorView ExpertsLowering::apply_gate(const TensorView& projected) {
  if (n_.clamped) return gated_by_neighbours(projected);
  const TensorView activated = make("activated", pairs(n_.inner), projected.type);
  call(Kernel::unary_forward, "activated", {sliced(projected, 1, 0, n_.inner)}, {activated});
  TensorView result = make("gated", pairs(n_.inner), projected.type);
  call(Kernel::multiply, "gated", {activated, sliced(projected, 1, n_.inner, n_.inner)}, {result});
  lowering_.save("projected", projected);
  lowering_.save("activated", activated);
  lowering_.save("gated", result);
  return result;
}

// GptOssExperts._apply_gate: clamp(gate) sigmoid(alpha clamp(gate)) (clamp(up) + 1).
TensorView ExpertsLowering::gated_by_neighbours(const TensorView& projected) {
  const Shape inner = pairs(n_.inner);
  const auto step = [&](Kernel kernel, std::string_view name, KernelArguments reads,
                        std::vector<StorageId> holds = {}) {
    TensorView result = make(name, inner, projected.type);
    call(kernel, name, std::move(reads), {result}, {.holds = std::move(holds)});
    return result;
  };
  const TensorView gate = step(Kernel::unary_forward, "gate", {every_other(projected, false)});
  const TensorView up = step(Kernel::unary_forward, "upper", {every_other(projected, true)});
  const TensorView slope = step(Kernel::scale, "gate.scaled", {gate});
  const TensorView sigmoid = step(Kernel::unary_forward, "sigmoid", {slope});
  const TensorView activated = step(Kernel::multiply, "activated", {gate, sigmoid});
  const TensorView raised = step(Kernel::scale, "raised", {up});
  // The function's variables live until it returns.
  TensorView result =
      step(Kernel::multiply, "gated", {raised, activated}, {gate.storage, up.storage});
  lowering_.save("projected", projected);
  lowering_.save("gate", gate);
  lowering_.save("sigmoid", sigmoid);
  lowering_.save("activated", activated);
  lowering_.save("raised", raised);
  lowering_.save("gated", result);
  return result;
}

TensorView ExpertsLowering::gate_gradient(const TensorView& d_gated) {
  if (n_.clamped) return neighbours_gradient(d_gated);
  const Shape inner = pairs(n_.inner);
  const TensorView projected = lowering_.saved("projected");
  const TensorView activated = lowering_.saved("activated");
  const TensorView d_activated = gradient("grad_activated", inner, d_gated.type);
  call(Kernel::multiply, "backward.activated", {d_gated, sliced(projected, 1, n_.inner, n_.inner)},
       {d_activated});
  const TensorView d_second = gradient("grad_second", inner, d_gated.type);
  call(Kernel::multiply, "backward.second", {d_gated, activated}, {d_second},
       {.holds = {d_activated.storage}});
  const TensorView d_first = gradient("grad_first", inner, d_gated.type);
  call(Kernel::unary_backward, "backward.first", {sliced(projected, 1, 0, n_.inner), d_activated},
       {d_first}, {.holds = {d_second.storage}});
  TensorView d_projected = gradient("grad_projected", pairs(2 * n_.inner), d_gated.type);
  call(Kernel::concatenate, "backward.projected", {d_first, d_second}, {d_projected});
  return d_projected;
}

// Autograd's nodes in reverse order: the last product, the gate's product, the sigmoid and its
// scale, both clamps, each with masks of a byte, and the two views, each of a whole tensor.
TensorView ExpertsLowering::neighbours_gradient(const TensorView& d_gated) {
  const Shape inner = pairs(n_.inner);
  const DataType type = d_gated.type;
  const TensorView projected = lowering_.saved("projected"), gate = lowering_.saved("gate");
  const TensorView sigmoid = lowering_.saved("sigmoid"), raised = lowering_.saved("raised");
  const TensorView activated = lowering_.saved("activated");
  const auto step = [&](Kernel kernel, const std::string& name, KernelArguments reads,
                        std::vector<StorageId> holds = {}) {
    TensorView result = gradient("grad_" + name, inner, type);
    call(kernel, "backward." + name, std::move(reads), {result}, {.holds = std::move(holds)});
    return result;
  };
  const TensorView d_up = step(Kernel::multiply, "raised", {d_gated, activated});
  const TensorView d_activated =
      step(Kernel::multiply, "gate.product", {d_gated, raised}, {d_up.storage, activated.storage});
  const TensorView d_gate = step(Kernel::multiply, "gate", {d_activated, sigmoid}, {d_up.storage});
  const TensorView d_sigmoid =
      step(Kernel::multiply, "sigmoid", {d_activated, gate}, {d_gate.storage, sigmoid.storage});
  const TensorView d_slope =
      step(Kernel::unary_backward, "gate.scaled", {sigmoid, d_sigmoid}, {d_gate.storage});
  const TensorView d_scaled = step(Kernel::scale, "gate.scale", {d_slope}, {d_gate.storage});
  call(Kernel::accumulate, "backward.gate.sum", {d_gate, d_scaled}, {d_gate});
  const auto clamp = [&](const std::string& name, bool odd, const TensorView& d, int masks,
                         const TensorView& other) {
    std::vector<StorageId> temporaries;
    temporaries.reserve(static_cast<std::size_t>(masks));
    for (int i = 0; i < masks; ++i) {
      temporaries.push_back(
          lowering_.new_temporary("backward." + name + ".mask", element_count(inner)));
    }
    TensorView result = gradient("grad_" + name, inner, type);
    call(Kernel::unary_backward, "backward." + name, {every_other(projected, odd), d}, {result},
         {.temporaries = std::move(temporaries), .holds = {other.storage}});
    return result;
  };
  const TensorView d_second = clamp("second", true, d_up, 2, d_gate);
  const TensorView d_first = clamp("first", false, d_gate, 1, d_second);
  const auto spread = [&](std::string_view name, const TensorView& d,
                          std::vector<StorageId> holds) {
    TensorView result = gradient(name, pairs(2 * n_.inner), type);
    call(Kernel::pad, std::string("backward.") + std::string(name), {d}, {result},
         {.holds = std::move(holds)});
    return result;
  };
  TensorView d_projected = spread("grad_projected", d_second, {d_first.storage});
  const TensorView other = spread("grad_projected.first", d_first, {d_projected.storage});
  call(Kernel::accumulate, "backward.projected", {d_projected, other}, {d_projected});
  return d_projected;
}

TensorView ExpertsLowering::bias_of_pairs(int input, const TensorView& experts,
                                          std::string_view name, std::vector<StorageId> holds) {
  const TensorView biases = lowering_.input(input);
  TensorView result = make(name, {n_.pairs, biases.shape[1]}, biases.type);
  call(Kernel::custom_forward, name, {biases, experts}, {result}, {.holds = std::move(holds)});
  return result;
}

void ExpertsLowering::give_bias_gradient(int input, const TensorView& gradient_of_pairs,
                                         std::string_view name, std::vector<StorageId> holds) {
  if (!lowering_.input_needs_gradient(input)) return;
  const TensorView sum = lowering_.new_input_gradient(input);
  holds.push_back(gradient_of_pairs.storage);
  const std::string step = fmt::format("backward.{}", name);
  call(Kernel::fill, step + ".zeros", {}, {sum}, {.holds = holds});
  call(Kernel::custom_backward, step, {sum, gradient_of_pairs, lowering_.saved("sorted")}, {sum},
       {.holds = std::move(holds)});
  lowering_.give_input_gradient(input, sum);
  lowering_.deliver_gradients();
}

}  // namespace stowage
