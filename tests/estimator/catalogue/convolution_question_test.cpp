// What a WorkspaceSource is asked for each convolution.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// A line each question of the forward pass, at batch 2.
std::string questions(const std::string& shape, const std::string& layer) {
  const std::string text =
      fmt::format("model: one\ninputs: {{x: {{shape: {}}}}}\nlayers:\n  - {}\n", shape, layer);
  const auto graph = testing::lowered(testing::described(text),
                                      {.kernels = KernelSet::stowage, .mode = Mode::inference});
  std::string lines;
  for (const KernelNode& node : graph->nodes) {
    if (node.convolution < 0) continue;
    const ConvolutionQuery q = convolution_query(*graph, node, 2);
    lines += fmt::format("{} * {} = {}, stride {}, padding {}, dilation {}, groups {}\n", q.x, q.w,
                         q.y, q.stride, q.padding, q.dilation, q.groups);
    const auto source = rule_workspace_source(8.6);
    CHECK(!source->engines(q).engines.empty());
  }
  return lines;
}

}  // namespace

TEST_CASE("a convolution over one axis is asked for as one of height 1") {
  CHECK(questions("[batch, 4, 16]",
                  "conv1d: {channels: 8, kernel: 3, stride: 2, padding: 1, dilation: 2}") ==
        "[2, 4, 1, 16] * [8, 4, 1, 3] = [2, 8, 1, 7], stride [1, 2], padding [0, 1], "
        "dilation [1, 2], groups 1\n");
  CHECK(questions("[batch, 4, 16]", "conv_transpose1d: {channels: 8, kernel: 2, stride: 2}") ==
        "[2, 8, 1, 32] * [4, 8, 1, 2] = [2, 4, 1, 16], stride [1, 2], padding [0, 0], "
        "dilation [1, 1], groups 1\n");
}

TEST_CASE("a convolution over three axes is asked for as it is") {
  CHECK(questions("[batch, 4, 5, 6, 7]", "conv3d: {channels: 8, kernel: 3, groups: 2}") ==
        "[2, 4, 5, 6, 7] * [8, 2, 3, 3, 3] = [2, 8, 3, 4, 5], stride [1, 1, 1], "
        "padding [0, 0, 0], dilation [1, 1, 1], groups 2\n");
}

TEST_CASE("what one side of an axis has beyond the other is padded before") {
  CHECK(questions("[batch, 4, 8, 8]", "conv2d: {channels: 8, kernel: 4, padding: same}") ==
        "[2, 4, 9, 9] * [8, 4, 4, 4] = [2, 8, 8, 8], stride [1, 1], padding [1, 1], "
        "dilation [1, 1], groups 1\n");
  CHECK(questions("[batch, 4, 8, 8]", "conv2d: {channels: 8, kernel: 3, padding: [2, 0, 1, 1]}") ==
        "[2, 4, 10, 8] * [8, 4, 3, 3] = [2, 8, 8, 8], stride [1, 1], padding [0, 1], "
        "dilation [1, 1], groups 1\n");
}

}  // namespace stowage
