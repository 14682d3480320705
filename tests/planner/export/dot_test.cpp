#include "planner/export/dot.hpp"

#include <doctest/doctest.h>

#include "tests/support/described_model.hpp"

namespace stowage {

TEST_CASE("a model's dot has each input, each operator and each edge once") {
  const ModelGraph model = testing::described(R"(
model: pair
inputs: {x: {shape: [batch, 4]}}
layers:
  - linear: {name: fc, features: 2}
  - relu: {name: act}
)");
  const std::string dot = export_dot(model);
  const auto count = [&](std::string_view part) {
    int times = 0;
    for (std::size_t at = dot.find(part); at != std::string::npos; at = dot.find(part, at + 1)) {
      ++times;
    }
    return times;
  };
  CHECK(count("t0 [label=\"x\\n[batch, 4]\"") == 1);
  CHECK(count("o0 [label=\"fc\\nlinear\\n[batch, 2]\", fillcolor=\"#e2f0d9\"];") == 1);
  CHECK(count("o1 [label=\"act\\nrelu\\n[batch, 2]\", fillcolor=\"white\"];") == 1);
  CHECK(count("t0 -> o0;") == 1);
  CHECK(count("o0 -> o1;") == 1);
  CHECK(count(" -> ") == 2);
  CHECK(count("[label=") == 3);
}

}  // namespace stowage
