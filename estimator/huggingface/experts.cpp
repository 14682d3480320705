// A mixture of experts as transformers 5 runs it (integrations/moe.py, grouped_mm): the router
// chooses experts for each token; the chosen pairs are sorted by expert, and each product is one
// grouped kernel over all experts' weights, which lie in one tensor.
#include <fmt/format.h>

#include "estimator/huggingface/decoder.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

/// Each line under a condition.
Lines guarded(const Lines& lines, std::string_view condition) {
  if (condition == "true") return lines;
  Lines result;
  for (const std::string& line : lines) {
    const std::size_t brace = line.find('{');
    result.push_back(
        fmt::format("{}{{when: {}, {}", line.substr(0, brace), condition, line.substr(brace + 1)));
  }
  return result;
}

Lines sparse_lines(const DecoderShape& shape) {
  const ExpertsShape& experts = *shape.experts;
  Lines lines{fmt::format("reshape: {{name: tokens_flat, from: input, shape: [batch * seq, {}]}}",
                          shape.hidden)};
  if (experts.shared > 0)
    lines.push_back("shared_expert: {name: shared_expert, from: tokens_flat}");
  const std::string_view router = experts.clamped ? "router" : "gate";
  lines.push_back(linear_line(router, "tokens_flat", experts.count, experts.clamped));
  lines.push_back(fmt::format("experts: {{name: experts, from: [tokens_flat, {}]}}", router));
  if (experts.shared > 0) {
    lines.push_back(linear_line("shared_expert_gate", "tokens_flat", 1, false));
    lines.push_back("sigmoid: {name: shared_weight}");
    lines.push_back("mul: {name: shared_output, from: [shared_weight, shared_expert]}");
    lines.push_back("add: {name: mixed, from: [experts, shared_output]}");
  } else {
    lines.push_back("identity: {name: mixed}");
  }
  lines.push_back(fmt::format("reshape: {{name: output, shape: [batch, seq, {}]}}", shape.hidden));
  return lines;
}

/// The weights of gpt-oss' experts, [experts, in, out], and their biases.
void write_clamped_experts(LayerLines& block, const DecoderShape& shape) {
  const ExpertsShape& experts = *shape.experts;
  const auto parameter = [&](std::string_view name, const std::string& sizes) {
    block.add(fmt::format("parameter: {{name: {}, shape: [{}, {}]}}", name, experts.count, sizes));
  };
  parameter("gate_up_proj", fmt::format("{}, {}", shape.hidden, 2 * experts.inner));
  parameter("gate_up_proj_bias", fmt::format("{}", 2 * experts.inner));
  parameter("down_proj", fmt::format("{}, {}", experts.inner, shape.hidden));
  parameter("down_proj_bias", fmt::format("{}", shape.hidden));
  block.add(
      fmt::format("routed_experts: {{name: routed, from: [input.0, input.1, gate_up_proj, "
                  "down_proj, gate_up_proj_bias, down_proj_bias], chosen: {}, form: clamped, "
                  "limit: {}, alpha: {}}}",
                  experts.chosen, experts.limit, experts.alpha));
}

void write_plain_experts(Network& network, LayerLines& block, const DecoderShape& shape) {
  const ExpertsShape& experts = *shape.experts;
  block.add(fmt::format("parameter: {{name: gate_up_proj, shape: [{}, {}, {}]}}", experts.count,
                        2 * experts.inner, shape.hidden));
  block.add(fmt::format("parameter: {{name: down_proj, shape: [{}, {}, {}]}}", experts.count,
                        shape.hidden, experts.inner));
  block.add(
      fmt::format("routed_experts: {{name: routed, from: [input.0, input.1, gate_up_proj, "
                  "down_proj], chosen: {}, normalized: {}{}}}",
                  experts.chosen, experts.normalized,
                  network.config.type() == "mixtral" ? "" : ", weights: as_logits"));
}

}  // namespace

void write_experts(Network& network, const DecoderShape& shape) {
  const ExpertsShape& experts = *shape.experts;
  LayerLines& block = network.text.block("experts");
  if (experts.clamped) {
    write_clamped_experts(block, shape);
  } else {
    write_plain_experts(network, block, shape);
  }
  if (experts.shared > 0) {
    network.text.block("shared_expert").add(feed_forward_lines(network, shape, experts.shared));
  }
  const std::string sparse = chosen_layers(experts.layers);
  LayerLines& mlp = network.text.block("mlp");
  mlp.add(guarded(sparse_lines(shape), sparse));
  if (sparse == "true") return;
  mlp.add(
      guarded(feed_forward_lines(network, shape, shape.inner), fmt::format("not ({})", sparse)));
  mlp.add(fmt::format("second: {{name: done, from: [down_proj, output], when: {}}}", sparse));
}

}  // namespace stowage
