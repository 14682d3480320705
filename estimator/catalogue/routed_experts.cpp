// routed_experts: the feed-forward networks of a mixture of experts, for rows of tokens.
//
// PyTorch's lowering is what transformers 5 runs by default (experts_lowering.hpp). On a card of
// compute capability below 8.0 transformers goes through the experts one by one in a custom
// function whose results are as large. Our executor has no kernels for the choice: there the
// operator is counted, and runs nowhere.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/catalogue/experts_lowering.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

constexpr std::string_view expected_experts =
    "rows [tokens, features], router logits [tokens, experts] and weights [experts, 2 inner, "
    "features] and [experts, features, inner]";
constexpr std::string_view expected_clamped_experts =
    "rows [tokens, features], router logits [tokens, experts], weights [experts, features, 2 "
    "inner] "
    "and [experts, inner, features], and biases [experts, 2 inner] and [experts, features]";

/// The shapes of the inputs behind the first weight, of `inner` features between the products.
std::vector<Shape> wanted_experts(bool clamped, const Affine& experts, const Affine& features,
                                  const Affine& doubled) {
  const Affine inner = quotient(doubled, 2);
  if (!clamped) return {{experts, features, inner}};
  return {{experts, inner, features}, {experts, doubled}, {experts, features}};
}

tl::expected<void, InferenceError> check_expert_ranks(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  constexpr std::array<std::size_t, 6> ranks{2, 2, 3, 3, 2, 2};
  const bool clamped = attributes.text("form") == "clamped";
  const std::size_t count = clamped ? 6 : 4;
  if (inputs.size() != count) {
    return refuse(fmt::format("of the form {} it has {} inputs, and {} are given",
                              attributes.text("form"), count, inputs.size()),
                  "form");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int at = static_cast<int>(i);
    if (auto error = want_floating(inputs[i], at)) return tl::unexpected(*error);
    if (inputs[i].shape.size() == ranks[i]) continue;
    return refuse(fmt::format("wants {}, and this one is {}",
                              clamped ? expected_clamped_experts : expected_experts,
                              to_string(inputs[i].shape)),
                  {}, at);
  }
  return {};
}

tl::expected<Inference, InferenceError> infer_experts(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  if (auto suits = check_expert_ranks(attributes, inputs); !suits) {
    return tl::unexpected(suits.error());
  }
  const Shape &rows = inputs[0].shape, &logits = inputs[1].shape, &up = inputs[2].shape;
  if (logits[0] != rows[0]) return refuse("has another number of tokens than the first", {}, 1);
  const bool clamped = attributes.text("form") == "clamped";
  const Affine& features = clamped ? up[1] : up[2];
  const Affine& doubled = clamped ? up[2] : up[1];
  if (up[0] != logits[1] || features != rows[1] || doubled.constant % 2 != 0) {
    return refuse(fmt::format("weights {} do not go with rows {} and logits {}", to_string(up),
                              to_string(rows), to_string(logits)),
                  {}, 2);
  }
  const std::vector<Shape> wanted = wanted_experts(clamped, up[0], rows[1], doubled);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Shape& found = inputs[i + 3].shape;
    if (found == wanted[i]) continue;
    return refuse(fmt::format("weights {} want {}", to_string(found), to_string(wanted[i])), {},
                  static_cast<int>(i) + 3);
  }
  const ExpertSizes n = expert_sizes(attributes, rows, inputs[3].shape);
  if (n.chosen > n.experts) {
    return refuse(fmt::format("chooses {} of {} experts", n.chosen, n.experts), "chosen");
  }
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = n.pairs * Affine(6 * n.hidden * n.inner);
  return result;
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
  std::vector<TensorView> reads{x, logits, up, down};
  for (int i = 4; i < lowering.input_count(); ++i) reads.push_back(lowering.input(i));
  lowering.emit(Kernel::custom_forward, "forward", std::move(reads),
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
  for (int i = 4; i < lowering.input_count(); ++i) reads.push_back(lowering.input(i));
  std::vector<std::pair<int, TensorView>> gradients;
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    gradients.emplace_back(i, lowering.new_input_gradient(i));
    writes.push_back(gradients.back().second);
  }
  lowering.emit(Kernel::custom_backward, "backward", reads, writes,
                {.flops = n.pairs * Affine(12 * n.hidden * n.inner)});
  for (const auto& [i, gradient] : gradients) lowering.give_input_gradient(i, gradient);
}

constexpr const char* experts_form_doc =
    "silu: as in Mixtral and Qwen; clamped: as in gpt-oss, a softmax of the chosen logits, weights "
    "[experts, in, out] with biases, values gated by their neighbours after both are clamped";

}  // namespace

OperatorRow rows::routed_experts() {
  return {.name = "routed_experts",
          .doc =
              "a mixture of experts over rows of tokens; inputs: rows, router logits, the "
              "experts' two weights, and two biases of the form clamped",
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
                          .choices = {"float32", "as_logits"}},
                         {.name = "form",
                          .type = AttributeType::choice,
                          .doc = experts_form_doc,
                          .default_value = std::string("silu"),
                          .choices = {"silu", "clamped"}},
                         {.name = "fused",
                          .type = AttributeType::boolean,
                          .doc = "clamped, in inference: kernels that gather rows, add biases and "
                                 "gate within themselves, as for packed weights",
                          .default_value = false},
                         {.name = "limit",
                          .type = AttributeType::real,
                          .doc = "clamped: the largest value that is gated",
                          .default_value = 7.0,
                          .minimum = 0},
                         {.name = "alpha",
                          .type = AttributeType::real,
                          .doc = "clamped: factor within the gate's sigmoid",
                          .default_value = 1.702,
                          .minimum = 0}},
          .min_inputs = 4,
          .max_inputs = 6,
          .infer = infer_experts,
          .lowering = {.stowage = {forward_experts_stowage, backward_experts_stowage},
                       .pytorch = {forward_experts_pytorch, backward_experts_pytorch}}};
}

}  // namespace stowage
