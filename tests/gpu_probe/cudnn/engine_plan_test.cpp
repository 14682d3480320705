// Engines by their names: from a plan's name of an engine the real cuDNN makes the engine again,
// for described devices, with no more workspace than the plan has.
#include "gpu_probe/cudnn/engine_plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <span>

#include "gpu_probe/cudnn/described_device.hpp"
#include "gpu_probe/cudnn/operation_graph.hpp"
#include "gpu_probe/cudnn/session.hpp"
#include "tests/support/cudnn_here.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::test {
namespace {

using Direction = ConvolutionCall::Direction;

std::vector<ConvolutionQuery> questions() {
  std::vector<ConvolutionQuery> queries;
  for (const auto direction :
       {Direction::forward, Direction::backward_data, Direction::backward_filter}) {
    for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
      for (const auto layout : {TensorLayout::contiguous, TensorLayout::channels_last}) {
        queries.push_back({.direction = direction,
                           .type = type,
                           .x = {8, 64, 28, 28},
                           .w = {128, 64, 3, 3},
                           .y = {8, 128, 14, 14},
                           .stride = {2, 2},
                           .padding = {1, 1},
                           .dilation = {1, 1},
                           .layout = layout});
      }
    }
  }
  return queries;
}

}  // namespace

TEST_CASE("an engine's name says its index and its knobs, and reads back") {
  const std::string text = "cudnn 9.19.0 eng34 k2=2 k13=-1";
  const auto name = parse_engine_name(text);
  REQUIRE(name.has_value());
  CHECK(name->version == "9.19.0");
  CHECK(name->index == 34);
  CHECK(name->knobs == std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 2}, {13, -1}});
  CHECK(to_string(*name) == text);
  CHECK(parse_engine_name("cudnn 9.19.0 eng0").has_value());
  for (const char* wrong : {"", "rule", "cudnn", "cudnn 9.19.0", "cudnn 9.19.0 engine1",
                            "cudnn 9.19.0 eng", "cudnn 9.19.0 eng-1", "cudnn 9.19.0 eng1 k2",
                            "cudnn 9.19.0 eng1 k2=", "cudnn  eng1 k2=1", "cudnn 9.19.0 eng1 2=1",
                            "cudnn 9.19.0 eng1 k2=1x", "cudnn 9.19.0 eng99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_engine_name(wrong).has_value());
  }
}

TEST_SUITE("cudnn") {
  TEST_CASE("cuDNN makes each engine again by its name, with the same workspace") {
    if (!testing::cudnn_is_here()) return;
    const CudnnLibrary& library = **cudnn_library();
    std::size_t engines = 0;
    for (const char* card : {"rtx3060", "h100-80gb"}) {
      const std::string device = testing::card_named(card).cudnn_device_json;
      const auto session = open_cudnn_session(device);
      REQUIRE(session.has_value());
      const CudnnDescriptor described = described_device(library, device);
      for (const ConvolutionQuery& query : questions()) {
        const auto answer = (*session)->engines(query);
        REQUIRE(answer.has_value());
        const CudnnDescriptor graph = convolution_graph(library, query);
        for (const Engine& engine : answer->engines) {
          CAPTURE(engine.name);
          const auto name = parse_engine_name(engine.name);
          REQUIRE(name.has_value());
          const CudnnDescriptor plan =
              engine_plan(library, {.described = &described}, graph, *name);
          CHECK(Bytes(workspace_of(plan)) == engine.workspace);
          ++engines;
        }
      }
    }
    MESSAGE(engines, " engines were made again by their names");
    CHECK(engines > 36);
  }

  TEST_CASE("a convolution's tensors are put together for its execution, without a device") {
    if (!testing::cudnn_is_here()) return;
    const CudnnLibrary& library = **cudnn_library();
    alignas(16) std::array<std::array<std::byte, 16>, 4> memory{};
    const std::array<std::int64_t, 3> ids{id_of_x, id_of_w, id_of_y};
    const std::array<void*, 3> data{&memory[0], &memory[1], &memory[2]};
    for (void* const workspace : {static_cast<void*>(nullptr), static_cast<void*>(&memory[3])}) {
      CHECK(variant_pack(library, ids, data, workspace).get() != nullptr);
    }
    // One address fewer than ids: cuDNN checks its arguments.
    CHECK_THROWS_AS(
        static_cast<void>(variant_pack(library, ids, std::span(data).first(2), nullptr)),
        LibraryFailure);
  }

  TEST_CASE("an engine that cuDNN does not have for a graph is refused in its words") {
    if (!testing::cudnn_is_here()) return;
    const CudnnLibrary& library = **cudnn_library();
    const CudnnDescriptor device =
        described_device(library, testing::card_named("rtx3060").cudnn_device_json);
    const CudnnDescriptor graph = convolution_graph(library, questions().front());
    const auto refusal = [&](const EngineName& name) -> std::string {
      try {
        static_cast<void>(engine_plan(library, {.described = &device}, graph, name));
        return "";
      } catch (const LibraryFailure& failure) {
        return failure.what();
      }
    };
    CHECK(refusal({.version = "9.19.0", .index = 99999}).starts_with("cuDNN: "));
    CHECK(
        refusal({.version = "9.19.0", .index = 0, .knobs = {{2, 1 << 20}}}).starts_with("cuDNN: "));
  }
}

}  // namespace stowage::test
