#include "estimator/memory/runtime_buffers.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/described_model.hpp"
#include "tests/support/one_layer.hpp"

namespace stowage {

TEST_CASE("cuBLAS's workspace is what PyTorch says for each compute capability") {
  std::ifstream file(STOWAGE_SOURCE_DIR "/tests/reference/blas_workspace.json");
  const auto reference = nlohmann::json::parse(file).at("bytes_by_major");
  CHECK(reference.size() == 6);
  const auto graph = testing::lowered(testing::described(testing::one_layer), {});
  for (const auto& [major, bytes] : reference.items()) {
    CAPTURE(major);
    const auto buffers = runtime_buffers(*graph, generic_card(24_GiB, std::stod(major)), {});
    REQUIRE_FALSE(buffers.empty());
    CHECK(buffers.front().name == "cuBLAS workspace");
    CHECK(buffers.front().bytes == Bytes(bytes.get<std::int64_t>()));
  }
}

}  // namespace stowage
