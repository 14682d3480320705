// Workspaces by layout, type and PyTorch's settings, as cuDNN 9.19.0 answers. Exact figures are not
// checked with another version. Where there is no cuDNN the test says so.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "estimator/workspace/benchmark.hpp"
#include "gpu_probe/cudnn/session.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "tests/support/cudnn_here.hpp"
#include "tests/support/source_directory.hpp"

using namespace stowage;
using testing::card_named;
using testing::cudnn_is_here;
using testing::is_measured_version;

namespace {

using Direction = ConvolutionCall::Direction;

/// N=32, C=64, 56x56, K=64, 3x3, padding 1.
ConvolutionQuery middle(DataType type = DataType::float32,
                        TensorLayout layout = TensorLayout::contiguous) {
  return {.type = type,
          .x = {32, 64, 56, 56},
          .w = {64, 64, 3, 3},
          .y = {32, 64, 56, 56},
          .stride = {1, 1},
          .padding = {1, 1},
          .dilation = {1, 1},
          .layout = layout};
}

std::int64_t first(const char* card, const ConvolutionQuery& query) {
  CudnnWorkspaceSource source(card_named(card));
  const WorkspaceAnswer answer = source.engines(query);
  CHECK(answer.origin == WorkspaceOrigin::cudnn);
  return answer.engines.front().workspace.count();
}

std::string index_of(const std::string& engine) {
  const std::size_t at = engine.find("eng");
  return engine.substr(at, engine.find(' ', at) - at);
}

}  // namespace

TEST_SUITE_BEGIN("cudnn");

TEST_CASE("half precision wants no workspace with channels innermost, and copies without") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    const ConvolutionQuery last = middle(type, TensorLayout::channels_last);
    CHECK(first("a100-sxm4-40gb", last) == 0);
    CHECK(first("rtx3090", last) == 0);
    CHECK(first("rtx4090", last) == 0);
    CHECK(first("h200", last) == 131);
    CHECK(first("rtx3090", middle(type)) == 25'763'856);  // x + w + y + 16
  }
}

TEST_CASE("every type is answered for, in every direction and in both layouts") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("rtx3090"));
  for (const DataType type :
       {DataType::float32, DataType::float16, DataType::bfloat16, DataType::float64}) {
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_filter}) {
      for (const TensorLayout layout : {TensorLayout::contiguous, TensorLayout::channels_last}) {
        if (type == DataType::float64 && layout == TensorLayout::channels_last) continue;
        ConvolutionQuery query = middle(type, layout);
        query.direction = direction;
        CHECK(source.engines(query).origin == WorkspaceOrigin::cudnn);
      }
    }
  }
  CHECK(source.rule_reason() == "");
}

TEST_CASE("every card of compute capability 7.5 and later has a text that cuDNN accepts") {
  const auto cards = all_cards(testing::source_path("/configs/gpus"));
  REQUIRE(cards);
  const bool here = cudnn_is_here();
  int served = 0;
  for (const Card& card : *cards) {
    CAPTURE(card.name);
    const bool is_served = card.compute_capability > 7.45;
    CHECK(card.cudnn_device_json.empty() != is_served);
    served += is_served ? 1 : 0;
    if (!here || !is_served) continue;
    const auto session = open_cudnn_session(card.cudnn_device_json);
    REQUIRE(session);
    const auto answer = (*session)->engines(middle(DataType::float16, TensorLayout::channels_last));
    REQUIRE(answer);
    CHECK(!answer->engines.empty());
  }
  CHECK(served >= 50);
}

TEST_CASE("without TF32 no engine of fp32 runs on tensor cores") {
  if (!cudnn_is_here()) return;
  const auto session = open_cudnn_session(card_named("rtx3090").cudnn_device_json);
  REQUIRE(session);
  ConvolutionQuery query = middle();
  query.settings.benchmark = true;
  const auto with = (*session)->engines(query);
  query.settings.tf32 = false;
  const auto without = (*session)->engines(query);
  REQUIRE(with);
  REQUIRE(without);
  CHECK(!without->benchmark.empty());
  CHECK(without->benchmark.size() < with->benchmark.size());
  std::set<std::string> all;
  for (const Engine& plan : with->benchmark) all.insert(plan.name);
  for (const Engine& plan : without->benchmark) CHECK(all.contains(plan.name));
  if (!is_measured_version()) return;
  CHECK(with->benchmark.front().workspace == 25'837'584_B);
  CHECK(without->benchmark.front().workspace == 409'856_B);
}

TEST_CASE("deterministic drops the engines that sum in any order") {
  if (!cudnn_is_here()) return;
  const auto session = open_cudnn_session(card_named("a100-sxm4-40gb").cudnn_device_json);
  REQUIRE(session);
  ConvolutionQuery query = middle();
  query.direction = Direction::backward_filter;
  query.settings.benchmark = true;
  const auto any = (*session)->engines(query);
  query.settings.deterministic = true;
  const auto same_bits = (*session)->engines(query);
  REQUIRE(any);
  REQUIRE(same_bits);
  CHECK(!same_bits->benchmark.empty());
  CHECK(same_bits->benchmark.size() < any->benchmark.size());
  std::set<std::string> dropped;
  for (const Engine& plan : any->benchmark) dropped.insert(index_of(plan.name));
  for (const Engine& plan : same_bits->benchmark) dropped.erase(index_of(plan.name));
  if (is_measured_version()) CHECK(dropped == std::set<std::string>{"eng20"});
}

TEST_CASE("with benchmark every plan of both lists is there, and the usual answer is unchanged") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("rtx3090"));
  ConvolutionQuery query = middle();
  const WorkspaceAnswer off = source.engines(query);
  query.settings.benchmark = true;
  const WorkspaceAnswer on = source.engines(query);
  CHECK(off.benchmark.empty());
  CHECK(on.engines.front().name == off.engines.front().name);
  CHECK(on.benchmark.size() > on.engines.size());
  CHECK(on.benchmark.front().name == off.engines.front().name);
  const BenchmarkOutcome outcome = benchmark_outcome(on.benchmark);
  CHECK(outcome.buffer ==
        std::ranges::max_element(on.benchmark, {}, &Engine::workspace)->workspace);
  CHECK(outcome.winners.front().workspace <= outcome.buffer);
  CHECK(outcome.winners.front().workspace >= on.engines.front().workspace);
}

TEST_SUITE_END();
