// routed_experts: the feed-forward networks of a mixture of experts, for rows of tokens.
//
// PyTorch's lowering is what transformers 5 runs by default (integrations/moe.py,
// grouped_mm_experts_forward, with the softmax, the choice and the division of the routers in front
// of it): pairs of a token and one of its experts are sorted by expert, so that each of the two
// products is one grouped kernel over all experts' weights. There is a row for each pair whatever
// the router chooses, so all sizes are known. On a card of compute capability below 8.0
// transformers goes through the experts one by one in a custom function whose results are as large.
// Our executor has no kernels for the choice: there the operator is counted, and runs nowhere.
#include <fmt/format.h>

#include <array>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

struct ExpertSizes {
  Affine tokens, pairs;
  std::int64_t hidden = 0, inner = 0, experts = 0, chosen = 0;
};

ExpertSizes expert_sizes(const Attributes& attributes, const Shape& rows, const Shape& down) {
  const std::int64_t chosen = attributes.integer("chosen");
  return {rows[0],          rows[0] * Affine(chosen), down[1].constant,
          down[2].constant, down[0].constant,         chosen};
}

tl::expected<Inference, InferenceError> infer_experts(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  constexpr std::array<std::size_t, 4> ranks{2, 2, 3, 3};
  for (int i = 0; i < 4; ++i) {
    const TensorType& input = inputs[static_cast<std::size_t>(i)];
    if (auto error = want_floating(input, i)) return tl::unexpected(*error);
    if (input.shape.size() != ranks[static_cast<std::size_t>(i)]) {
      return refuse(
          fmt::format(
              "wants rows [tokens, features], router logits [tokens, experts] and weights "
              "[experts, 2 inner, features] and [experts, features, inner], and this one is "
              "{}",
              to_string(input.shape)),
          {}, i);
    }
  }
  const Shape &rows = inputs[0].shape, &logits = inputs[1].shape, &up = inputs[2].shape,
              &down = inputs[3].shape;
  if (logits[0] != rows[0]) return refuse("has another number of tokens than the first", {}, 1);
  const Shape wanted{up[0], rows[1], quotient(up[1], 2)};
  if (up[0] != logits[1] || up[2] != rows[1] || up[1].constant % 2 != 0) {
    return refuse(fmt::format("weights {} do not go with rows {} and logits {}", to_string(up),
                              to_string(rows), to_string(logits)),
                  {}, 2);
  }
  if (down != wanted) {
    return refuse(fmt::format("weights {} want {}", to_string(down), to_string(wanted)), {}, 3);
  }
  const ExpertSizes n = expert_sizes(attributes, rows, down);
  if (n.chosen > n.experts) {
    return refuse(fmt::format("chooses {} of {} experts", n.chosen, n.experts), "chosen");
  }
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = n.pairs * Affine(6 * n.hidden * n.inner);
  return result;
}

/// The lowering of one call, with short functions for its tensors and kernels.
class ExpertsLowering {
 public:
  explicit ExpertsLowering(OperatorLowering& lowering)
      : lowering_(lowering),
        n_(expert_sizes(lowering.attributes(), lowering.input(0).shape, lowering.input(3).shape)) {}

  void forward();
  void backward();

 private:
  TensorView make(std::string_view name, const Shape& shape, DataType type,
                  StorageClass kind = StorageClass::activation) {
    return lowering_.new_tensor(name, shape, type, kind);
  }
  TensorView gradient(std::string_view name, const Shape& shape, DataType type) {
    return make(name, shape, type, StorageClass::activation_gradient);
  }
  void call(Kernel kernel, std::string_view name, KernelArguments reads, KernelArguments writes,
            NodeExtras extras = {}) {
    lowering_.emit(kernel, name, std::move(reads), std::move(writes), std::move(extras));
  }
  [[nodiscard]] bool normalized() const { return lowering_.attributes().boolean("normalized"); }
  [[nodiscard]] Shape pairs(std::int64_t features) const { return {n_.pairs, features}; }
  [[nodiscard]] Affine product_flops(std::int64_t a, std::int64_t b) const {
    return n_.pairs * Affine(2 * a * b);
  }
  struct Chosen {
    TensorView weights, experts;  ///< [tokens, chosen]
  };
  Chosen choose();
  void weight_gradients(const TensorView& d_weights);

  OperatorLowering& lowering_;
  ExpertSizes n_;
};

// The router: probabilities, the experts with the largest, and their weights.
ExpertsLowering::Chosen ExpertsLowering::choose() {
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

/// The steps of grouped_mm_experts_forward: choose the experts, sort the pairs of tokens and
/// experts by expert, gather their rows, multiply them up, gate them, multiply them down, weight
/// them, restore the order, and sum over a token's experts.
void ExpertsLowering::forward() {
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
  const TensorView projected = make("projected", pairs(2 * n_.inner), up.type);
  call(Kernel::custom_forward, "up", {selected, up, offsets}, {projected},
       {.flops = product_flops(n_.hidden, 2 * n_.inner)});
  lowering_.save("up", up);
  const TensorView activated = make("activated", pairs(n_.inner), up.type);
  call(Kernel::unary_forward, "activated", {sliced(projected, 1, 0, n_.inner)}, {activated});
  const TensorView gated = make("gated", pairs(n_.inner), up.type);
  call(Kernel::multiply, "gated", {activated, sliced(projected, 1, n_.inner, n_.inner)}, {gated});
  lowering_.save("projected", projected);
  lowering_.save("activated", activated);
  lowering_.save("gated", gated);
  const TensorView results = make("results", pairs(n_.hidden), down.type);
  call(Kernel::custom_forward, "down", {gated, down, offsets}, {results},
       {.flops = product_flops(n_.inner, n_.hidden)});
  lowering_.save("down", down);
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
  const std::vector<StorageId> variables{experts.storage, narrow.storage,
                                         counts.storage,  restored.storage,
                                         weights.storage, lowering_.input(1).storage};
  const TensorView y = lowering_.output_type().type == mixed
                           ? lowering_.new_output()
                           : make("sum", lowering_.output_type().shape, mixed);
  call(Kernel::reduce, "sum", {restored}, {y}, {.holds = variables});
  if (lowering_.output_type().type != mixed) {
    call(Kernel::cast, "forward", {y}, {lowering_.new_output()}, {.holds = variables});
  }
}

// Emits the backward of the division by the sum, of the choice and of the softmax, down to the
// router's logits.
void ExpertsLowering::weight_gradients(const TensorView& d_weights) {
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
  const auto narrowed = [&](const TensorView& from, DataType type, std::string_view name,
                            std::vector<StorageId> holds) {
    if (from.type == type) return from;
    TensorView to = gradient(name, from.shape, type);
    call(Kernel::cast, fmt::format("backward.{}", name), {from}, {to}, {.holds = std::move(holds)});
    return to;
  };
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
  const TensorView projected = lowering_.saved("projected");
  const TensorView activated = lowering_.saved("activated");
  const TensorView d_activated = gradient("grad_activated", inner, gated.type);
  call(Kernel::multiply, "backward.activated", {d_gated, sliced(projected, 1, n_.inner, n_.inner)},
       {d_activated});
  const TensorView d_second = gradient("grad_second", inner, gated.type);
  call(Kernel::multiply, "backward.second", {d_gated, activated}, {d_second},
       {.holds = {d_activated.storage}});
  const TensorView d_first = gradient("grad_first", inner, gated.type);
  call(Kernel::unary_backward, "backward.first", {sliced(projected, 1, 0, n_.inner), d_activated},
       {d_first}, {.holds = {d_second.storage}});
  const TensorView d_projected = gradient("grad_projected", pairs(2 * n_.inner), gated.type);
  call(Kernel::concatenate, "backward.projected", {d_first, d_second}, {d_projected});
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

void forward_experts_pytorch(OperatorLowering& lowering) { ExpertsLowering(lowering).forward(); }
void backward_experts_pytorch(OperatorLowering& lowering) { ExpertsLowering(lowering).backward(); }

// One call, of which the sizes of the two products between are counted.
void forward_experts_stowage(OperatorLowering& lowering) {
  const ExpertSizes n =
      expert_sizes(lowering.attributes(), lowering.input(0).shape, lowering.input(3).shape);
  const TensorView x = lowering.input(0), logits = lowering.input(1), up = lowering.input(2),
                   down = lowering.input(3);
  const auto made = [&](std::string_view name, std::int64_t features) {
    return lowering.new_tensor(name, {n.pairs, features}, up.type, StorageClass::activation);
  };
  const TensorView projected = made("projected", 2 * n.inner);
  const TensorView results = made("results", n.hidden);
  lowering.emit(Kernel::custom_forward, "forward", {x, logits, up, down},
                {lowering.new_output(), projected, results},
                {.flops = n.pairs * Affine(6 * n.hidden * n.inner)});
  lowering.save("rows", x);
  lowering.save("logits", logits);
  lowering.save("up", up);
  lowering.save("down", down);
  lowering.save("projected", projected);
  lowering.save("results", results);
}

void backward_experts_stowage(OperatorLowering& lowering) {
  const ExpertSizes n =
      expert_sizes(lowering.attributes(), lowering.input(0).shape, lowering.input(3).shape);
  std::vector<TensorView> reads{lowering.output_gradient()}, writes;
  for (const std::string_view role : {"rows", "logits", "up", "down", "projected", "results"}) {
    reads.push_back(lowering.saved(role));
  }
  std::vector<std::pair<int, TensorView>> gradients;
  for (int i = 0; i < 4; ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    gradients.emplace_back(i, lowering.new_input_gradient(i));
    writes.push_back(gradients.back().second);
  }
  lowering.emit(Kernel::custom_backward, "backward", reads, writes,
                {.flops = n.pairs * Affine(12 * n.hidden * n.inner)});
  for (const auto& [i, gradient] : gradients) lowering.give_input_gradient(i, gradient);
}

}  // namespace

OperatorRow rows::routed_experts() {
  return {.name = "routed_experts",
          .doc =
              "a mixture of experts over rows of tokens; inputs: rows, router logits, the "
              "experts' two weights",
          .attributes = {{.name = "chosen",
                          .type = AttributeType::integer,
                          .doc = "experts of each token",
                          .minimum = 1},
                         {.name = "normalized",
                          .type = AttributeType::boolean,
                          .doc = "the chosen experts' weights are divided by their sum",
                          .default_value = true},
                         {.name = "weights",
                          .type = AttributeType::choice,
                          .doc = "format of the chosen experts' weights: float32 as in Mixtral, or "
                                 "the logits' as in Qwen",
                          .default_value = std::string("float32"),
                          .choices = {"float32", "as_logits"}}},
          .min_inputs = 4,
          .max_inputs = 4,
          .infer = infer_experts,
          .lowering = {.stowage = {forward_experts_stowage, backward_experts_stowage},
                       .pytorch = {forward_experts_pytorch, backward_experts_pytorch}}};
}

}  // namespace stowage
