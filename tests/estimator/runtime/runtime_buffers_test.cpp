#include "estimator/runtime/runtime_buffers.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/described_model.hpp"
#include "tests/support/one_layer.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

TEST_CASE("cuBLAS's workspace is what PyTorch says for each compute capability") {
  std::ifstream file(testing::source_path("/tests/reference/blas_workspace.json"));
  const auto reference = nlohmann::json::parse(file).at("bytes_by_major");
  CHECK(reference.size() == 6);
  const auto graph = testing::lowered(testing::described(testing::one_layer), {});
  for (const auto& entry : reference.items()) {
    CAPTURE(entry.key());
    const auto buffers = runtime_buffers(*graph, generic_card(24_GiB, std::stod(entry.key())), {});
    REQUIRE_FALSE(buffers.empty());
    CHECK(buffers.front().name == "cuBLAS workspace");
    CHECK(buffers.front().bytes == Bytes(entry.value().get<std::int64_t>()));
  }
}

TEST_CASE("older releases of PyTorch: less on Blackwell, and cuBLASLt's own") {
  const auto graph = testing::lowered(testing::shipped("mlp"), {});
  const auto buffers = [&](double capability, ReleaseVersion pytorch) {
    return runtime_buffers(*graph, generic_card(24_GiB, capability),
                           {.stack = {.pytorch = pytorch}});
  };
  CHECK(buffers(10.0, {2, 12}).front().bytes == 33'554'432_B);
  CHECK(buffers(10.0, {2, 11}).front().bytes == 8'519'680_B);
  CHECK(buffers(9.0, {2, 4}).front().bytes == 33'554'432_B);
  CHECK(buffers(8.6, {2, 11}).back().name == "cuBLASLt workspace");
  CHECK(buffers(8.6, {2, 12}).back().name != "cuBLASLt workspace");
  const RuntimeBuffer lt = buffers(8.6, {2, 10}).back();
  CHECK(lt.name == "cuBLASLt workspace");
  CHECK(lt.bytes == 1_MiB);
  CHECK(graph->node(lt.first_use).kernel == Kernel::linear_forward);
}

}  // namespace stowage
