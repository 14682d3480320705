#include "tests/gpu_probe/cudnn/shipped_questions.hpp"

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/attention_workspace.hpp"
#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::test {
namespace {

struct AskedSettings {
  Precision precision;
  bool tf32;
};
constexpr AskedSettings asked_settings[] = {{Precision::fp32, true},
                                            {Precision::fp32, false},
                                            {Precision::fp16, true},
                                            {Precision::bf16, true}};

/// The question that a GPU's kernel would ask for the node.
ConvolutionQuery question_of_call(const StepGraph& graph, const KernelNode& node,
                                  std::int64_t batch) {
  std::byte somewhere{};
  const NodeArguments arguments = arguments_of(node, batch, [&](StorageId) { return &somewhere; });
  return called_convolution({.kernel = node.kernel,
                             .attributes = &node.attributes,
                             .reads = arguments.reads,
                             .writes = arguments.writes,
                             .engine = {},
                             .tf32 = graph.settings.convolutions.tf32,
                             .workspace = nullptr,
                             .workspace_bytes = {}})
      .query;
}

}  // namespace

void add_convolutions(const std::string& model, std::int64_t batch, ShippedConvolutions& all) {
  for (const auto& [precision, tf32] : asked_settings) {
    const ModelGraph described = testing::shipped(model, {.seq = {}, .precision = precision});
    for (const Mode mode : {Mode::train, Mode::inference}) {
      LoweringSettings settings{.mode = mode, .optimizer = described.optimizer};
      settings.convolutions.tf32 = tf32;
      const auto graph = testing::lowered(described, settings);
      for (const KernelNode& node : graph->nodes) {
        if (node.convolution < 0) continue;
        const ConvolutionQuery question = convolution_query(*graph, node, batch);
        ++all.calls;
        if (question_of_call(*graph, node, batch) != question) {
          all.unequal.push_back(model + ": " + node.name);
        }
        all.questions.insert(question);
      }
    }
  }
}

void add_attention(const std::string& model, std::int64_t batch, double compute_capability,
                   std::set<AttentionQuery>& all) {
  if (!cudnn_has_attention(compute_capability)) return;
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const ModelGraph described = testing::shipped(model, {.seq = {}, .precision = precision});
    for (const KernelSet kernels : all_kernel_sets) {
      for (const Mode mode : {Mode::train, Mode::inference}) {
        const auto graph = testing::lowered(described, {.kernels = kernels,
                                                        .mode = mode,
                                                        .optimizer = described.optimizer,
                                                        .compute_capability = compute_capability});
        for (const KernelNode& node : graph->nodes) {
          if (is_cudnn_attention(node)) all.insert(attention_query(*graph, node, batch));
        }
      }
    }
  }
}

}  // namespace stowage::test
