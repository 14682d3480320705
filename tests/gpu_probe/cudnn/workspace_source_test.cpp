// CudnnWorkspaceSource. The figures are of cuDNN 9.19.0; with another version, which may rank
// engines otherwise, exact figures are not checked. Where cuDNN is not installed the test says so
// and tests the rule.
#include "gpu_probe/cudnn/workspace_source.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"
#include "tests/support/cudnn_here.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stowage;
using testing::card_named;
using testing::cudnn_is_here;
using testing::is_measured_version;

namespace {

using Direction = ConvolutionCall::Direction;

ConvolutionQuery convolution(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size,
                             std::int64_t window, Direction direction = Direction::forward) {
  const std::int64_t padding = window / 2;
  return {.direction = direction,
          .x = {n, c, size, size},
          .w = {k, c, window, window},
          .y = {n, k, size, size},
          .stride = {1, 1},
          .padding = {padding, padding},
          .dilation = {1, 1}};
}

/// In MiB, to one decimal, times ten: 3921 is 392.1 MiB.
std::int64_t tenths(Bytes bytes) {
  return std::llround(static_cast<double>(bytes.count()) * 10 / (1 << 20));
}

Bytes largest(const WorkspaceAnswer& answer) {
  return std::ranges::max_element(answer.engines, {}, &Engine::workspace)->workspace;
}

std::vector<Engine> engines_of(std::initializer_list<std::int64_t> workspaces) {
  std::vector<Engine> engines;
  for (const std::int64_t bytes : workspaces) {
    engines.push_back({std::to_string(bytes), Bytes(bytes)});
  }
  return engines;
}

std::string engines_in_full(const std::vector<Engine>& engines) {
  std::string text;
  for (const Engine& engine : engines) {
    text += engine.name + " " + std::to_string(engine.workspace.count()) + "\n";
  }
  return text;
}

std::string engine_names(const std::vector<Engine>& engines) {
  std::string text;
  for (const Engine& engine : engines) text += engine.name + " ";
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("cudnn");

TEST_CASE("an RTX 3090's engines without an RTX 3090") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("rtx3090"));
  CHECK(source.origin() == WorkspaceOrigin::none);
  const WorkspaceAnswer answer = source.engines(convolution(32, 64, 64, 56, 3));
  CHECK(answer.origin == WorkspaceOrigin::cudnn);
  CHECK(source.origin() == WorkspaceOrigin::cudnn);
  CHECK(source.rule_reason() == "");
  CHECK(answer.engines.size() <= most_engines);
  CHECK(answer.engines.front().name.starts_with("cudnn " + *cudnn_version() + " eng"));
  if (!is_measured_version()) return;
  REQUIRE(answer.engines.size() >= 3);
  CHECK(answer.engines[0].workspace == 25'837'584_B);
  CHECK(answer.engines[1].workspace == 409'856_B);
  CHECK(answer.engines[2].workspace == 51'527'696_B);
  CHECK(answer.engines.back().workspace == 0_B);
}

// PyTorch runs a conv1d as a conv2d of height 1, which is how a step asks for it.
TEST_CASE("convolutions over one and three axes have engines of cuDNN's too") {
  if (!cudnn_is_here()) return;
  const std::string text = R"(model: sequences and volumes
inputs:
  signal: {shape: [batch, 64, 200]}
  volume: {shape: [batch, 16, 8, 24, 24]}
layers:
  - conv1d: {name: first, from: signal, channels: 64, kernel: 3, padding: same}
  - conv1d: {name: line, from: first, channels: 64, kernel: 5, stride: 2, dilation: 2}
  - conv_transpose1d: {name: longer, from: line, channels: 32, kernel: 4, stride: 2}
  - conv3d: {name: near, from: volume, channels: 32, kernel: 3, padding: 1}
  - conv3d: {name: cube, from: near, channels: 32, kernel: 3, padding: 1, groups: 2}
  - conv_transpose3d: {name: larger, from: cube, channels: 16, kernel: 2, stride: 2}
  - sum: {name: one, from: longer, axes: [1, 2]}
  - sum: {name: other, from: larger, axes: [1, 2, 3, 4]}
  - add: {name: both, from: [one, other]}
loss:
  mse: {from: [both, one]}
)";
  CudnnWorkspaceSource source(card_named("rtx3090"));
  const auto graph = testing::lowered(testing::described(text), {.kernels = KernelSet::pytorch});
  const auto step = size_step(graph, 4, source);
  REQUIRE(step);
  CHECK(source.rule_reason() == "");
  CHECK(step->workspace_origin == WorkspaceOrigin::cudnn);
  std::set<std::size_t> ranks;
  for (const KernelNode& node : graph->nodes) {
    if (node.convolution < 0) continue;
    const ConvolutionQuery query = convolution_query(*graph, node, 4);
    ranks.insert(query.x.size());
    CHECK(query.stride.size() + 2 == query.x.size());
    if (query.x.size() == 4) CHECK(query.x[2] == 1);
  }
  CHECK(ranks == std::set<std::size_t>{4, 5});
}

// Tenths of a MiB at batch 32; what cuDNN 9.19.0 says for the described card.
TEST_CASE("VGG-16's layers on an A100") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  CudnnWorkspaceSource source(card_named("a100-sxm4-40gb"));
  struct Row {
    std::int64_t c, k, size;
    Direction direction;
    std::int64_t first, largest;
  };
  const Row rows[] = {
      {3, 64, 224, Direction::forward, 3, 4165},
      {3, 64, 224, Direction::backward_data, 0, 12007},
      {3, 64, 224, Direction::backward_filter, 0, 4224},
      {64, 64, 224, Direction::forward, 3921, 11763},
      {64, 64, 224, Direction::backward_data, 7841, 15683},
      {64, 64, 224, Direction::backward_filter, 7871, 7941},
      {512, 512, 28, Direction::forward, 580, 1560},
      {512, 512, 28, Direction::backward_data, 1070, 1560},
      {512, 512, 28, Direction::backward_filter, 1340, 1340},
  };
  for (const Row& row : rows) {
    CAPTURE(row.c);
    CAPTURE(static_cast<int>(row.direction));
    const WorkspaceAnswer answer =
        source.engines(convolution(32, row.c, row.k, row.size, 3, row.direction));
    CHECK(tenths(answer.engines.front().workspace) == row.first);
    CHECK(tenths(largest(answer)) == row.largest);
  }
}

TEST_CASE("every served architecture answers, with an engine that wants nothing") {
  if (!cudnn_is_here()) return;
  for (const char* name :
       {"t4", "a100-sxm4-40gb", "rtx3090", "rtx4090", "h200", "b200", "rtx5090"}) {
    CudnnWorkspaceSource source(card_named(name));
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_filter}) {
      CAPTURE(name);
      const WorkspaceAnswer answer = source.engines(convolution(8, 128, 256, 28, 3, direction));
      CHECK(answer.origin == WorkspaceOrigin::cudnn);
      CHECK(std::ranges::find(answer.engines, 0_B, &Engine::workspace) != answer.engines.end());
    }
  }
}

TEST_CASE("groups, dilation and oblong windows are understood") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("rtx3090"));
  ConvolutionQuery query = convolution(8, 96, 96, 56, 3);
  query.w[1] = 1;
  query.groups = 96;
  CHECK(source.engines(query).origin == WorkspaceOrigin::cudnn);
  query = convolution(8, 64, 64, 56, 3);
  query.dilation = {2, 2};
  query.padding = {2, 2};
  CHECK(source.engines(query).origin == WorkspaceOrigin::cudnn);
  query = convolution(8, 64, 64, 17, 1);
  query.w[3] = 7;
  query.padding = {0, 3};
  CHECK(source.engines(query).origin == WorkspaceOrigin::cudnn);
}

TEST_CASE("the same question has the same answer, and a fresh source agrees") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource one(card_named("h200")), two(card_named("h200"));
  const ConvolutionQuery query = convolution(16, 64, 128, 28, 3);
  const std::string first = engine_names(one.engines(query).engines);
  CHECK(first == engine_names(one.engines(query).engines));
  CHECK(first == engine_names(two.engines(query).engines));
}

TEST_CASE("what cuDNN does not serve falls back to the rule, and says why") {
  const ConvolutionQuery query = convolution(32, 64, 64, 56, 3);
  CudnnWorkspaceSource old(card_named("gtx-960-2gb"));
  const WorkspaceAnswer answer = old.engines(query);
  CHECK(answer.origin == WorkspaceOrigin::rule);
  CHECK(old.origin() == WorkspaceOrigin::rule);
  CHECK(old.rule_reason() == "cuDNN does not serve this card");
  CHECK(answer.engines.front().workspace == rule_workspace(query, 5.2));
  Card broken = card_named("rtx3090");
  broken.cudnn_device_json = "{\"deviceVer\": 860}";
  CudnnWorkspaceSource refused(broken);
  CHECK(refused.engines(query).origin == WorkspaceOrigin::rule);
  CHECK(refused.rule_reason() != "");
  CHECK(refused.engines(query).engines.front().workspace == rule_workspace(query, 8.6));
}

TEST_CASE("a question that cuDNN refuses makes the origin mixed") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("rtx3090"));
  CHECK(source.engines(convolution(8, 64, 64, 28, 3)).origin == WorkspaceOrigin::cudnn);
  ConvolutionQuery integers = convolution(8, 64, 64, 28, 3);
  integers.type = DataType::int64;
  CHECK(source.engines(integers).origin == WorkspaceOrigin::rule);
  CHECK(source.origin() == WorkspaceOrigin::mixed);
  CHECK(source.rule_reason() == "cuDNN: no convolutions of this data type");
}

TEST_CASE("an answer keeps the first, the falling ones, the least and the largest") {
  CHECK(engine_names(kept_engines(engines_of({5, 9, 0}))) == "5 9 0 ");
  CHECK(engine_names(kept_engines(engines_of({50, 60, 61, 62, 40, 63, 64, 30, 65, 99, 0, 66}))) ==
        "50 60 61 62 40 30 99 0 ");
}

TEST_CASE("kept answers are cuDNN's own, for every convolution that ships") {
  if (!cudnn_is_here()) return;
  const testing::TemporaryFolder folder;
  std::set<ConvolutionQuery> questions;
  for (const std::string& name : model_names(testing::source_path("/configs/models"))) {
    const auto graph = testing::lowered(testing::shipped(name), {});
    for (const KernelNode& node : graph->nodes) {
      if (node.convolution >= 0) questions.insert(convolution_query(*graph, node, 2));
    }
  }
  // A sample, once the catalogue is large: cuDNN takes a millisecond for each question.
  const std::size_t stride = 1 + questions.size() / 400;
  CudnnWorkspaceSource without(card_named("rtx3090"));
  std::vector<std::pair<ConvolutionQuery, std::string>> fresh;
  std::size_t number = 0;
  {
    CudnnWorkspaceSource first(card_named("rtx3090"), folder.path());
    for (const ConvolutionQuery& question : questions) {
      if (number++ % stride != 0) continue;
      fresh.emplace_back(question, engines_in_full(first.engines(question).engines));
    }
    CHECK(engines_in_full(without.engines(fresh[0].first).engines) == fresh[0].second);
  }
  REQUIRE(folder.names().size() == 1);
  CHECK(fresh.size() >= 100);
  CudnnWorkspaceSource second(card_named("rtx3090"), folder.path());
  CudnnAnswerCache cache(
      folder.path(),
      cudnn_circumstances(cudnn_sources_hash(), card_named("rtx3090").cudnn_device_json));
  for (const auto& [question, engines] : fresh) {
    REQUIRE(cache.find(question_bytes(question)));
    CHECK(engines_in_full(cache.find(question_bytes(question))->engines) == engines);
    const WorkspaceAnswer answer = second.engines(question);
    CHECK(answer.origin == WorkspaceOrigin::cudnn);
    CHECK(engines_in_full(answer.engines) == engines);
  }
  CHECK(second.origin() == WorkspaceOrigin::cudnn);
  // Another card has answers of its own.
  CudnnWorkspaceSource other(card_named("h200"), folder.path());
  CudnnWorkspaceSource other_fresh(card_named("h200"));
  CHECK(engines_in_full(other.engines(fresh[0].first).engines) ==
        engines_in_full(other_fresh.engines(fresh[0].first).engines));
}

TEST_SUITE_END();
