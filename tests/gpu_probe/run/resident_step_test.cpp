// The results of lowered descriptions: attributes reach their kernels under the names that these
// read, and every tensor that needs a gradient gets one.
#include "gpu_probe/run/resident_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage {

namespace {

/// The gradient of the model's first parameter.
std::vector<float> first_gradient(const std::string& text) {
  const StepGraph graph = test::step_of(text.c_str());
  const auto results = run_resident_step(graph, 8);
  REQUIRE(results.has_value());
  REQUIRE(graph.gradients.front().storage.valid());
  const std::vector<std::byte>& bytes = results->at(graph.gradients.front().storage);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool all_zero(const std::vector<float>& values, std::size_t begin, std::size_t end) {
  return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(begin),
                     values.begin() + static_cast<std::ptrdiff_t>(end),
                     [](float value) { return value == 0; });
}

std::string embedded(const std::string& padding) {
  return "model: m\n"
         "inputs: {x: {shape: [batch], dtype: int64}, y: {shape: [batch, 4]}}\n"
         "layers:\n"
         "  - embedding: {name: e, from: x, count: 2, features: 4" +
         padding + "}\nloss:\n  mse: {from: [e, y]}\n";
}

std::string linear_with_loss(const std::string& from) {
  return "model: m\n"
         "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
         "layers:\n"
         "  - linear: {name: a, from: x, features: 4}\n"
         "loss:\n  mse: {from: " +
         from + "}\n";
}

}  // namespace

TEST_CASE("an embedding's padding row gets no gradient") {
  const std::vector<float> plain = first_gradient(embedded(""));
  REQUIRE(plain.size() == 8);
  CHECK_FALSE(all_zero(plain, 0, 4));
  CHECK_FALSE(all_zero(plain, 4, 8));
  const std::vector<float> padded = first_gradient(embedded(", padding_index: 1"));
  CHECK_FALSE(all_zero(padded, 0, 4));
  CHECK(all_zero(padded, 4, 8));
}

TEST_CASE("a mean squared error's gradient goes to the target too, where that needs one") {
  const std::vector<float> plain = first_gradient(linear_with_loss("[a, y]"));
  CHECK_FALSE(all_zero(plain, 0, plain.size()));
  CHECK(first_gradient(linear_with_loss("[y, a]")) == plain);
  const std::vector<float> both = first_gradient(linear_with_loss("[a, a]"));
  CHECK(all_zero(both, 0, both.size()));
}

}  // namespace stowage
