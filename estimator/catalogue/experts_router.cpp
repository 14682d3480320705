// The routers in front of grouped experts: which experts a token takes, and their weights.
#include <fmt/format.h>

#include "estimator/catalogue/experts_lowering.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"

namespace stowage {

// The router: probabilities, the experts with the largest, and their weights.
ExpertsLowering::Chosen ExpertsLowering::choose() {
  if (n_.clamped) return choose_before_softmax();
  const TensorView logits = lowering_.input(1);
  const DataType wide = statistics_type(logits.type);
  const Shape few{n_.tokens, n_.chosen};
  const TensorView given = lowering_.cast(logits, wide, "router.wide");
  const TensorView probabilities = make("probabilities", given.shape, wide);
  call(Kernel::softmax_forward, "probabilities", {given}, {probabilities});
  lowering_.save("probabilities", probabilities);
  TensorView weights = make("weights", few, wide);
  const TensorView experts = make("experts", few, DataType::int64);
  call(Kernel::custom_forward, "choice", {probabilities}, {weights, experts});
  lowering_.save("experts", experts);
  if (normalized()) {
    const TensorView sums = make("sums", {n_.tokens, 1}, wide);
    call(Kernel::reduce, "sums", {weights}, {sums});
    const TensorView before = make("weights.before", few, wide);
    call(Kernel::copy, "weights.before", {weights}, {before});
    call(Kernel::custom_forward, "division", {weights, sums}, {weights});
    lowering_.save("sums", sums);
    lowering_.save("weights.before", before);
  }
  if (lowering_.attributes().text("weights") == "as_logits") {
    weights = lowering_.cast(weights, logits.type, "weights.narrow");
  }
  return {weights, experts};
}

// GptOssTopKRouter: the largest logits, and their softmax in the logits' format.
ExpertsLowering::Chosen ExpertsLowering::choose_before_softmax() {
  const TensorView logits = lowering_.input(1);
  const Shape few{n_.tokens, n_.chosen};
  const TensorView values = make("values", few, logits.type);
  const TensorView experts = make("experts", few, DataType::int64);
  call(Kernel::custom_forward, "choice", {logits}, {values, experts});
  lowering_.save("experts", experts);
  const TensorView weights = make("weights", few, logits.type);
  call(Kernel::softmax_forward, "weights", {values}, {weights});
  lowering_.save("weights", weights);
  return {weights, experts};
}

// Emits the backward of the division by the sum, of the choice and of the softmax, down to the
// router's logits.
void ExpertsLowering::weight_gradients(const TensorView& d_weights) {
  if (n_.clamped) return weight_gradients_before_softmax(d_weights);
  const DataType wide = lowering_.saved("probabilities").type;
  const Shape few{n_.tokens, n_.chosen};
  TensorView d = d_weights.type == wide ? d_weights : gradient("grad_weights.wide", few, wide);
  if (d_weights.type != wide) call(Kernel::cast, "backward.weights.wide", {d_weights}, {d});
  if (normalized()) {
    const TensorView sums = lowering_.saved("sums"), before = lowering_.saved("weights.before");
    const auto step = [&](std::string_view name, Kernel kernel, KernelArguments reads,
                          std::vector<StorageId> holds) {
      TensorView result = gradient(name, few, wide);
      call(kernel, fmt::format("backward.{}", name), std::move(reads), {result},
           {.holds = std::move(holds)});
      return result;
    };
    const TensorView ratio = step("ratio", Kernel::custom_backward, {before, sums}, {d.storage});
    const TensorView slope = step("slope", Kernel::custom_backward, {ratio, sums}, {d.storage});
    const TensorView negative =
        step("negative", Kernel::scale, {d}, {slope.storage, ratio.storage});
    const TensorView product = step("product", Kernel::multiply, {negative, slope},
                                    {d.storage, ratio.storage, before.storage, sums.storage});
    const TensorView own =
        step("own", Kernel::custom_backward, {d, sums}, {product.storage, before.storage});
    const TensorView d_sums = gradient("grad_sums", {n_.tokens, 1}, wide);
    call(Kernel::sum_to_shape, "backward.sums", {product}, {d_sums},
         {.holds = {d.storage, before.storage, sums.storage, own.storage}});
    call(Kernel::accumulate, "backward.both", {own, d_sums}, {own});
    d = own;
  }
  const Shape all{n_.tokens, n_.experts};
  const TensorView zeros = gradient("grad_probabilities.zeros", all, wide);
  call(Kernel::fill, "backward.zeros", {}, {zeros}, {.holds = {d.storage}});
  const TensorView scattered = gradient("grad_probabilities", all, wide);
  call(Kernel::custom_backward, "backward.choice", {zeros, d, lowering_.saved("experts")},
       {scattered});
  const TensorView d_logits = gradient("grad_logits", all, wide);
  const TensorView probabilities = lowering_.saved("probabilities");
  call(Kernel::softmax_backward, "backward.probabilities", {probabilities, scattered}, {d_logits},
       {.temporaries = {new_softmax_product(lowering_, probabilities)}});
  lowering_.give_input_gradient(1, d_logits);
}

// The softmax, then the choice, which puts the gradients among zeros.
void ExpertsLowering::weight_gradients_before_softmax(const TensorView& d_weights) {
  const TensorView weights = lowering_.saved("weights");
  const TensorView d_values = gradient("grad_values", weights.shape, weights.type);
  call(Kernel::softmax_backward, "backward.router", {weights, d_weights}, {d_values},
       {.temporaries = {new_softmax_product(lowering_, weights)}});
  const TensorView d_logits = gradient("grad_logits", {n_.tokens, n_.experts}, weights.type);
  call(Kernel::fill, "backward.zeros", {}, {d_logits}, {.holds = {d_values.storage}});
  call(Kernel::custom_backward, "backward.choice", {d_logits, d_values, lowering_.saved("experts")},
       {d_logits});
  lowering_.give_input_gradient(1, d_logits);
}

}  // namespace stowage
