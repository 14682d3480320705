#include "estimator/workspace/rule_workspace_source.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/workspace/benchmark.hpp"

using namespace stowage;

namespace {

using Direction = ConvolutionCall::Direction;

/// Square images and windows, `same` padding.
ConvolutionQuery convolution(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size,
                             std::int64_t window, std::int64_t stride = 1) {
  const std::int64_t padding = window / 2;
  const std::int64_t out = (size + 2 * padding - window) / stride + 1;
  return {.x = {n, c, size, size},
          .w = {k, c, window, window},
          .y = {n, k, out, out},
          .stride = {stride, stride},
          .padding = {padding, padding},
          .dilation = {1, 1}};
}

std::int64_t rule(ConvolutionQuery query, double compute_capability,
                  Direction direction = Direction::forward) {
  query.direction = direction;
  return rule_workspace(query, compute_capability).count();
}

}  // namespace

// The figures are what cuDNN 9.19 answers for the same convolutions.
TEST_CASE("where the rule is cuDNN's own first choice") {
  const ConvolutionQuery middle = convolution(32, 64, 64, 56, 3);
  CHECK(rule(middle, 8.6) == 25'837'584);                            // RTX 3090: x + w + 16
  CHECK(rule(middle, 8.6, Direction::backward_data) == 51'527'696);  // x + w + y + 16
  CHECK(rule(middle, 7.5) == 409'856);                               // Tesla T4: 25/9 w + 256
  CHECK(rule(middle, 7.5, Direction::backward_data) == 409'856);
  CHECK(rule(convolution(32, 3, 64, 224, 7, 2), 8.0) == 122'065'680);  // A100: x + w + y + 16
}

TEST_CASE("filters that outweigh the image bring both activations in") {
  // 512 -> 512 at 14x14: x is 2.7 times w.
  const ConvolutionQuery late = convolution(64, 512, 512, 14, 3);
  const std::int64_t x = 4LL * 64 * 512 * 14 * 14, w = 4LL * 512 * 512 * 9;
  CHECK(rule(late, 8.0) == 2 * x + w + 16);
  CHECK(rule(late, 9.0) == 2 * x + w + 16);
  CHECK(rule(convolution(64, 256, 256, 56, 3), 8.0) ==
        4LL * (64 * 256 * 56 * 56 + 256 * 256 * 9) + 16);
}

TEST_CASE("first layers, pointwise and depthwise convolutions want little") {
  const ConvolutionQuery first = convolution(32, 3, 64, 224, 3);
  CHECK(rule(first, 8.6) == 20 * 1024);
  CHECK(rule(first, 8.6, Direction::backward_data) == 0);
  CHECK(rule(convolution(32, 64, 64, 56, 1), 8.6) == 20 * 1024);
  CHECK(rule(convolution(32, 64, 64, 56, 1), 8.6, Direction::backward_filter) == 0);
  ConvolutionQuery depthwise = convolution(32, 96, 96, 56, 3);
  depthwise.w[1] = 1;
  depthwise.groups = 96;
  for (const double compute_capability : {8.0, 8.6, 9.0, 12.0}) {
    CAPTURE(compute_capability);
    CHECK(rule(depthwise, compute_capability) == 0);
  }
}

TEST_CASE("older cards keep transformed filters for 3x3 of stride 1 only") {
  CHECK(rule(convolution(8, 1024, 1024, 4, 3), 5.2) == 4LL * 1024 * 1024 * 25 + 256);
  CHECK(rule(convolution(8, 1024, 1024, 4, 3), 5.2, Direction::backward_filter) == 20 * 1024);
  CHECK(rule(convolution(8, 64, 64, 56, 3, 2), 6.1) == 20 * 1024);
  CHECK(rule(convolution(8, 64, 64, 56, 7, 2), 6.1) == 20 * 1024);
  const std::int64_t activation = 4LL * 64 * 64 * 56 * 56;
  CHECK(rule(convolution(64, 64, 64, 56, 5), 6.1) == 2 * activation + 4 * 64 * 64 * 25 + 16);
  CHECK(rule(convolution(64, 64, 64, 56, 5), 6.1, Direction::backward_data) == 20 * 1024);
}

TEST_CASE("an answer ends with an engine without workspace") {
  const auto source = rule_workspace_source(8.6);
  const WorkspaceAnswer answer = source->engines(convolution(32, 64, 64, 56, 3));
  CHECK(answer.origin == WorkspaceOrigin::rule);
  REQUIRE(answer.engines.size() == 2);
  CHECK(answer.engines[0].name == "rule");
  CHECK(answer.engines[0].workspace == 25'837'584_B);
  CHECK(answer.engines[1].name == "rule, without workspace");
  CHECK(answer.engines[1].workspace == 0_B);
}

TEST_CASE("origins have names") {
  CHECK(to_string(WorkspaceOrigin::none) == "none");
  CHECK(to_string(WorkspaceOrigin::cudnn) == "cudnn");
  CHECK(to_string(WorkspaceOrigin::rule) == "rule");
  CHECK(to_string(WorkspaceOrigin::mixed) == "mixed");
}

// As above: what cuDNN 9.19 answers for the same convolutions.
TEST_CASE("half precision converts contiguous operands, and channels-last ones not at all") {
  ConvolutionQuery half = convolution(32, 64, 64, 56, 3);
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    half.type = type;
    half.layout = TensorLayout::contiguous;
    for (const double capability : {7.5, 8.0, 8.6, 8.9, 12.0}) {
      CHECK(rule(half, capability) == 25'763'856);
    }
    half.layout = TensorLayout::channels_last;
    CHECK(rule(half, 8.0) == 0);
    CHECK(rule(half, 8.9) == 0);
    CHECK(rule(half, 9.0) == 131);
    CHECK(rule(half, 9.0, Direction::backward_data) == 131);
    CHECK(rule(half, 8.6, Direction::backward_filter) == (25'763'856 - 16) / 20);
  }
}

TEST_CASE("fp32 without TF32 is as before the tensor cores, and wants nothing from 9.0 on") {
  ConvolutionQuery query = convolution(32, 64, 64, 56, 3);
  query.settings.tf32 = false;
  CHECK(rule(query, 8.6) == 409'856);
  CHECK(rule(query, 8.0, Direction::backward_data) == 409'856);
  CHECK(rule(query, 9.0) == 0);
  query.type = DataType::float64;
  query.settings.tf32 = true;
  CHECK(rule(query, 7.5) == 0);
  CHECK(rule(query, 9.0) == 0);
}

TEST_CASE("fp32 with channels innermost is rounded into a copy of what is read, before 9.0") {
  ConvolutionQuery query = convolution(32, 64, 64, 56, 3);
  query.layout = TensorLayout::channels_last;
  for (const double capability : {8.0, 8.6, 12.0}) {
    CHECK(rule(query, capability) == 25'837'584);
    CHECK(rule(query, capability, Direction::backward_data) == 25'837'584);
  }
  CHECK(rule(query, 9.0) == 131);
  CHECK(rule(query, 10.0) == 0);
  query.settings.tf32 = false;
  CHECK(rule(query, 9.0, Direction::backward_data) == 51'527'696);
}

TEST_CASE("volumes follow the rule of images") {
  ConvolutionQuery cube{.x = {4, 32, 32, 32, 32},
                        .w = {64, 32, 3, 3, 3},
                        .y = {4, 64, 32, 32, 32},
                        .stride = {1, 1, 1},
                        .padding = {1, 1, 1},
                        .dilation = {1, 1, 1}};
  CHECK(rule(cube, 8.0) == 16'998'416);
  CHECK(rule(cube, 8.6, Direction::backward_data) == 50'552'848);
  cube.type = DataType::float16;
  CHECK(rule(cube, 8.6) == 25'276'432);
  cube.layout = TensorLayout::channels_last;
  CHECK(rule(cube, 9.0) == 131);
}

TEST_CASE(
    "with benchmark the rule has a list as long as cuDNN's, and a buffer of twice the operands") {
  ConvolutionQuery query = convolution(32, 64, 64, 56, 3);
  query.settings.benchmark = true;
  const WorkspaceAnswer answer = rule_workspace_source(8.6)->engines(query);
  CHECK(answer.engines.front().workspace == 25'837'584_B);
  const BenchmarkOutcome outcome = benchmark_outcome(answer.benchmark);
  CHECK(outcome.buffer == 2 * 51'527'696_B);
  REQUIRE(outcome.winners.size() == 3);
  CHECK(outcome.winners[0].name == "rule, all converted");
  CHECK(outcome.winners[0].workspace == 51'527'696_B);
  CHECK(outcome.winners[1].workspace == 25'837'584_B);
  CHECK(outcome.winners[2].workspace == 0_B);
}
