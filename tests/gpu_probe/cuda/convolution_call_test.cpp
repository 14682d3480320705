// A kernel call of a convolution asks cuDNN the question that the plan asked, for every convolution
// of every shipped model.
#include "gpu_probe/cuda/convolution_call.hpp"

#include <doctest/doctest.h>

#include "estimator/memory/sized_step.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::test {
namespace {

int check_questions(const StepGraph& graph) {
  int questions = 0;
  std::byte somewhere{};
  for (const KernelNode& node : graph.nodes) {
    if (!is_convolution(node.kernel)) continue;
    CAPTURE(node.name);
    const NodeArguments arguments = arguments_of(node, 2, [&](StorageId) { return &somewhere; });
    const CalledConvolution called = called_convolution({.kernel = node.kernel,
                                                         .attributes = &node.attributes,
                                                         .reads = arguments.reads,
                                                         .writes = arguments.writes,
                                                         .tf32 = graph.settings.convolutions.tf32});
    CHECK(called.query == convolution_query(graph, node, 2));
    ++questions;
  }
  return questions;
}

}  // namespace

TEST_CASE("a call of a convolution is the question that its plan asked") {
  CHECK(check_questions(step_of(small_cnn)) == 5);
  CHECK(check_questions(step_of(small_resnet)) > 10);
  CHECK(check_questions(step_of(small_unet)) > 10);
  for (const Precision precision : {Precision::fp64, Precision::bf16, Precision::amp_fp16}) {
    CHECK(check_questions(step_of(small_cnn, {}, precision)) == 5);
    for (const OperatorModel& model : operator_models()) {
      const std::string text = operator_description(model);
      static_cast<void>(check_questions(step_of(text.c_str(), {}, precision)));
    }
  }
}

}  // namespace stowage::test
