// Which questions a step asks, and what it makes of the answers.
#include "estimator/memory/sized_step.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/described_model.hpp"

using namespace stowage;

namespace {

/// Answers with its own count of questions, and remembers them.
class Recorder final : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    asked.push_back(query);
    WorkspaceAnswer answer{.engines = {{"one", Bytes(std::ssize(asked))}, {"none", 0_B}},
                           .origin = WorkspaceOrigin::cudnn};
    if (query.settings.benchmark) answer.benchmark = {{"small", 5_B}, {"large", 9_B}, {"5", 5_B}};
    return answer;
  }
  std::vector<ConvolutionQuery> asked;
};

const std::string images = R"(model: images
inputs:
  image: {shape: [batch, 32, 28, 28]}
layers:
  - conv2d: {name: plain, channels: 64, kernel: 3, padding: 1}
  - conv2d: {name: apart, channels: 64, kernel: 3, padding: 1, groups: 64}
  - conv_transpose2d: {name: larger, channels: 64, kernel: 2, stride: 2, groups: 64}
)";

SizedStep sized(const std::string& text, const LoweringSettings& settings, Recorder& source,
                std::int64_t batch = 4) {
  auto step = size_step(testing::lowered(testing::described(text), settings), batch, source);
  REQUIRE(step);
  return *std::move(step);
}

std::map<std::string, std::string> engines_by_node(const SizedStep& step) {
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    for (const Engine& engine : step.engines[i]) {
      names[step.graph->nodes[i].name] +=
          engine.name + "=" + std::to_string(engine.workspace.count()) + " ";
    }
  }
  return names;
}

using Names = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("PyTorch runs depthwise convolutions itself, but not transposed ones") {
  const LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  Recorder source;
  const SizedStep step = sized(images, settings, source);
  CHECK(engines_by_node(step) == Names{{"plain.forward", "one=1 none=0 "},
                                       {"apart.forward", "pytorch depthwise=0 "},
                                       {"larger.forward", "one=2 none=0 "}});
  CHECK(step.workspace_origin == WorkspaceOrigin::cudnn);
  CHECK(source.asked.size() == 2);
  Recorder ours;
  CHECK(engines_by_node(sized(images, {.mode = Mode::inference}, ours))["apart.forward"] ==
        "one=2 none=0 ");
}

TEST_CASE("a convolution whose own shapes leave 64 bits is refused with its name") {
  // A step's file need not tie them to the storages that the node reads.
  StepGraph graph = *testing::lowered(testing::described(images), {.mode = Mode::inference});
  for (ConvolutionCall& call : graph.convolutions) {
    call.x.shape.at(0) = Affine{0, std::int64_t{1} << 50};
  }
  Recorder source;
  const auto sized =
      size_step(std::make_shared<const StepGraph>(std::move(graph)), std::int64_t{1} << 20, source);
  REQUIRE_FALSE(sized.has_value());
  CHECK(sized.error().front().message ==
        "batch 1048576 makes the shapes of 'plain.forward' (convolution_forward) too large to be "
        "sized");
}

TEST_CASE("a model of depthwise convolutions alone has no workspaces to ask for") {
  const std::string text = R"(model: apart
inputs:
  image: {shape: [batch, 32, 28, 28]}
layers:
  - conv2d: {name: apart, channels: 32, kernel: 3, groups: 32}
)";
  Recorder source;
  const SizedStep step =
      sized(text, {.kernels = KernelSet::pytorch, .mode = Mode::inference}, source);
  CHECK(source.asked.empty());
  CHECK(step.workspace_origin == WorkspaceOrigin::none);
}

TEST_CASE("the settings of torch.backends.cudnn are part of the question, where they matter") {
  LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  settings.convolutions = {.tf32 = false, .deterministic = true};
  Recorder source;
  sized(images, settings, source);
  CHECK(source.asked[0].settings == settings.convolutions);
  Recorder half;
  sized(images + "train: {precision: fp16}\n", settings, half);
  CHECK(half.asked[0].type == DataType::float16);
  CHECK(half.asked[0].settings == ConvolutionSettings{.deterministic = true});
  settings.kernels = KernelSet::stowage;
  Recorder ours;
  sized(images, settings, ours);
  CHECK(ours.asked[0].settings == ConvolutionSettings{.tf32 = false});
}

TEST_CASE(
    "with benchmark the conservative end comes first, and all plans are there to be replayed") {
  LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  Recorder off;
  CHECK(sized(images, settings, off).benchmark.empty());
  settings.convolutions.benchmark = true;
  Recorder source;
  const SizedStep step = sized(images, settings, source);
  CHECK(engines_by_node(step) == Names{{"plain.forward", "large=9 small=5 "},
                                       {"apart.forward", "pytorch depthwise=0 "},
                                       {"larger.forward", "large=9 small=5 "}});
  REQUIRE(step.benchmark.size() == step.graph->nodes.size());
  CHECK(step.benchmark[0].size() == 3);
  CHECK(step.benchmark[1].empty());
}

TEST_CASE("images whose channels lie innermost are asked for in that layout") {
  const std::string text = R"(model: permuted
inputs:
  image: {shape: [batch, 28, 28, 32]}
layers:
  - transpose: {name: seen, axes: [0, 3, 1, 2]}
  - conv2d: {name: plain, channels: 64, kernel: 3, padding: 1}
  - conv2d: {name: apart, channels: 64, kernel: 3, padding: 1, groups: 64}
)";
  Recorder source;
  sized(text, {.kernels = KernelSet::pytorch, .mode = Mode::inference}, source);
  REQUIRE(source.asked.size() == 2);  // the depthwise one is cuDNN's then
  CHECK(source.asked[0].layout == TensorLayout::channels_last);
  CHECK(source.asked[0].x == std::vector<std::int64_t>{4, 32, 28, 28});
  CHECK(source.asked[1].layout == TensorLayout::channels_last);
  Recorder twice;
  sized(text + "train: {precision: fp64}\n",
        {.kernels = KernelSet::pytorch, .mode = Mode::inference}, twice);
  REQUIRE(twice.asked.size() == 1);
  CHECK(twice.asked[0].layout == TensorLayout::contiguous);
}

TEST_CASE("a step that is sized for its memory alone has the same bytes and engines, and no work") {
  const LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  const auto graph = testing::lowered(testing::described(images), settings);
  Recorder source, another;
  const auto whole = size_step(graph, 4, source);
  const auto memory = size_step(graph, 4, another, SizedParts::memory);
  REQUIRE(whole);
  REQUIRE(memory);
  CHECK(memory->storage_bytes == whole->storage_bytes);
  CHECK(engines_by_node(*memory) == engines_by_node(*whole));
  CHECK(another.asked == source.asked);
  CHECK(whole->flops.size() == graph->nodes.size());
  CHECK(memory->flops.empty());
  CHECK(memory->bytes_moved.empty());
}
