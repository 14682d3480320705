// The fused kernels of scaled dot product attention, forward and backward.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/pytorch/attention.hpp"
#include "estimator/recorded/aten_table.hpp"

namespace stowage {

namespace {

AttentionImplementation implementation_of(const AtenCall& call) {
  const std::string_view name = kernel_name(call.node());
  if (name.find("flash") != std::string_view::npos) return AttentionImplementation::flash;
  if (name.find("cudnn") != std::string_view::npos) return AttentionImplementation::cudnn;
  return AttentionImplementation::efficient;
}

/// The arguments that both directions have.
struct RecordedAttention {
  TensorView query, key, value;
  const TensorView* bias = nullptr;
  AttentionSizes sizes;
  Attributes attributes;
};

bool has_constant_heads(const TensorView& view) {
  return std::all_of(view.shape.begin() + 1, view.shape.end(), [](const Affine& extent) {
    return extent.is_constant() && extent.constant > 0;
  });
}

/// None: more than the first axis depends on the batch, or there are no heads.
std::optional<RecordedAttention> recorded_attention(const AtenCall& call) {
  RecordedAttention found{.query = call.tensor("query", 4),
                          .key = call.tensor("key", 4),
                          .value = call.tensor("value", 4)};
  for (const TensorView* view : {&found.query, &found.key, &found.value}) {
    if (!has_constant_heads(*view)) return std::nullopt;
  }
  found.bias = call.find("attn_bias");
  if (found.bias != nullptr && found.bias->shape.size() > 4) {
    call.refuse(fmt::format("whose 'attn_bias' is {}", to_string(found.bias->shape)));
  }
  found.sizes = attention_sizes(found.query.shape, found.key.shape, found.value.shape);
  if (found.sizes.groups < 1) call.refuse("whose 'key' has more heads than 'query'");
  found.attributes.set("implementation", std::string(to_string(implementation_of(call))));
  found.attributes.set("causal", call.boolean("is_causal", false));
  found.attributes.set("dropout", call.real("dropout_p", 0));
  return found;
}

}  // namespace

bool complete_attention(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  auto found = recorded_attention(call);
  if (!found) return false;
  if (call.result(0).shape.size() != 4) {
    call.refuse(fmt::format("whose result is {}", to_string(call.result(0).shape)));
  }
  std::vector<TensorView> reads{found->query, found->key, found->value};
  if (found->bias != nullptr) reads.push_back(*found->bias);
  const Affine bytes = attention_scratch(implementation_of(call), found->sizes, found->query.type);
  completion.emit(Kernel::attention_forward, {}, std::move(reads), call.node().writes,
                  {.attributes = std::move(found->attributes),
                   .flops = fused_attention_flops(found->sizes),
                   .temporaries = completion.scratch("workspace", bytes)});
  return true;
}

bool complete_attention_backward(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  auto found = recorded_attention(call);
  if (!found) return false;
  const TensorView& dy =
      call.find("grad_out_") != nullptr ? call.tensor("grad_out_", 4) : call.tensor("grad_out", 4);
  const TensorView& out = call.tensor("out", 4);
  std::vector<TensorView> reads{dy,           found->query, found->key,
                                found->value, out,          call.tensor("logsumexp")};
  if (found->bias != nullptr) reads.push_back(*found->bias);
  const Affine bytes = attention_backward_scratch(
      implementation_of(call), completion.compute_capability(), found->sizes, dy, out);
  completion.emit(Kernel::attention_backward, {}, std::move(reads), call.node().writes,
                  {.attributes = std::move(found->attributes),
                   .flops = fused_attention_backward_flops(found->sizes),
                   .temporaries = completion.scratch("workspace", bytes)});
  return true;
}

}  // namespace stowage
