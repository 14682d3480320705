// Checked: a case of tests/reference/operators.json, and whether a test has compared all of it.
//
// The reference was computed in float64 and rounded to float32, so the remaining difference is our
// own rounding. The tolerance is relative to the largest value of each tensor.
#pragma once

#include <set>
#include <string>

#include "tests/gpu_probe/host/kernels/pytorch_case.hpp"

namespace stowage::test {

inline constexpr double tolerance = 1e-6;

/// The gradients of the case that a test must compare. It removes each that is compared.
class Checked {
 public:
  explicit Checked(const Case& c) : case_(c) {}

  void output(const Tensor& actual) { CHECK_MESSAGE(near(actual, case_.output), case_.name); }
  void input(std::size_t i, const Tensor& actual) {
    CHECK_MESSAGE(near(actual, case_.input_gradients.at(i)), case_.name, ", input ", i);
    inputs_.insert(i);
  }
  void parameter(const std::string& name, const Tensor& actual) {
    for (const auto& [existing, expected] : case_.parameter_gradients) {
      if (existing != name) continue;
      CHECK_MESSAGE(near(actual, expected), case_.name, ", ", name);
      parameters_.insert(name);
    }
  }
  ~Checked() {
    for (std::size_t i = 0; i < case_.input_gradients.size(); ++i) {
      if (!case_.input_gradients[i].floats.empty()) CHECK(inputs_.count(i) == 1);
    }
    CHECK(parameters_.size() == case_.parameter_gradients.size());
  }

 private:
  static bool near(const Tensor& actual, const Tensor& expected) {
    return distance(actual, expected) <= tolerance;
  }
  const Case& case_;
  std::set<std::size_t> inputs_;
  std::set<std::string> parameters_;
};

}  // namespace stowage::test
