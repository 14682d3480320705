// Compares pointwise losses with their definitions, at their kinks and bounds.
#include <cmath>
#include <functional>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

struct Comparison {
  Kernel forward, backward;
  bool logits;
  std::vector<float> x, target;
  std::function<double(double, double)> term, slope;
};

const std::vector<float> numbers{-2, 0, 1.5, 3, 0.25, -7}, goals{1, 0, 1.5, -4, 0.5, 0.125};
const std::vector<float> shares{0, 1, 0.25, 0.5, 0.75, 1}, labels{0, 0.5, 0.25, 1, 0, 1};
const std::vector<float> logs{-0.5, -3, -1.25, -2, -40, -0.125};

double bounded_log(double p) { return std::max(std::log(p), -100.0); }

const std::vector<Comparison> comparisons{
    {Kernel::mse_forward, Kernel::mse_backward, false, numbers, goals,
     [](double x, double t) { return std::pow(x - t, 2); },
     [](double x, double t) { return 2 * (x - t); }},
    {Kernel::l1_forward, Kernel::l1_backward, false, numbers, goals,
     [](double x, double t) { return std::abs(x - t); },
     [](double x, double t) { return x < t   ? -1
                                     : x > t ? 1
                                             : 0; }},
    {Kernel::bce_forward, Kernel::bce_backward, true, numbers, labels,
     [](double x, double t) { return (1 - t) * x + std::log(1 + std::exp(-x)); },
     [](double x, double t) { return 1 / (1 + std::exp(-x)) - t; }},
    {Kernel::bce_forward, Kernel::bce_backward, false, shares, labels,
     [](double x, double t) { return -t * bounded_log(x) - (1 - t) * bounded_log(1 - x); },
     [](double x, double t) { return (x - t) / std::max((1 - x) * x, 1e-12); }},
    {Kernel::kl_div_forward, Kernel::kl_div_backward, false, logs, labels,
     [](double x, double t) { return t > 0 ? t * (std::log(t) - x) : 0; },
     [](double, double t) { return -t; }}};

}  // namespace

TEST_CASE("losses of elements are the means of their definitions") {
  for (const Comparison& c : comparisons) {
    Tensor x = tensor({2, 3}, c.x), target = tensor({2, 3}, c.target);
    const Attributes attributes = attributes_of({{"logits", c.logits}, {"scale", 12.0}});
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += c.term(c.x[i], c.target[i]);
    CHECK(result(c.forward, attributes, {&x, &target}, {}).floats[0] ==
          doctest::Approx(sum / 6).epsilon(1e-6));
    run(c.backward, attributes, {&x, &target}, {&x});
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(x.floats[i] == doctest::Approx(2 * c.slope(c.x[i], c.target[i])).epsilon(1e-6));
    }
  }
}

TEST_CASE("a divergence may be averaged over the batch alone") {
  Tensor x = tensor({2, 3}, logs), target = tensor({2, 3}, labels);
  const auto loss = [&](const char* reduction) {
    return result(Kernel::kl_div_forward, attributes_of({{"reduction", std::string(reduction)}}),
                  {&x, &target}, {})
        .floats[0];
  };
  CHECK(loss("batchmean") == doctest::Approx(3 * loss("mean")));
}

}  // namespace stowage::test
