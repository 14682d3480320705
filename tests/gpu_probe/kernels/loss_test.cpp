// Properties of losses that PyTorch's values do not show: formats of targets, targets that are no
// class, parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"
#include "tests/gpu_probe/kernels/device_arithmetic.hpp"

namespace stowage::test {
namespace {

constexpr std::int64_t ignored = -100;

float spread_value(std::size_t i) { return std::sin(static_cast<float>(i) * 1.7F) * 3; }

Tensor spread(const Sizes& shape) {
  Tensor x = unwritten(shape);
  for (std::size_t i = 0; i < x.floats.size(); ++i) x.floats[i] = spread_value(i);
  return x;
}

/// Targets, of which every fifth is ignored.
Tensor some_targets(const Sizes& shape, std::size_t classes) {
  Tensor target = integer_tensor(shape, std::vector<std::int64_t>(elements(shape)));
  for (std::size_t i = 0; i < target.integers.size(); ++i) {
    target.integers[i] = i % 5 == 4 ? ignored : static_cast<std::int64_t>(i * 7 % classes);
  }
  return target;
}

}  // namespace

TEST_CASE("the classes of a loss may be whole numbers of any size") {
  Tensor x = spread({3, 4});
  std::vector<std::int64_t> wide{2, 0, 3};
  std::vector<std::int32_t> narrow{2, 0, 3};
  std::vector<std::uint8_t> bytes{2, 0, 3};
  std::vector<float> losses;
  for (const TensorArgument& target :
       {argument_of(wide, DataType::int64), argument_of(narrow, DataType::int32),
        argument_of(bytes, DataType::uint8)}) {
    Tensor loss = unwritten({});
    run_on_device(Kernel::nll_loss_forward, {}, {x.argument(), target}, {loss.argument()});
    losses.push_back(loss.floats[0]);
  }
  CHECK(losses[0] == doctest::Approx(-(x.floats[2] + x.floats[4] + x.floats[11]) / 3));
  CHECK(losses[1] == losses[0]);
  CHECK(losses[2] == losses[0]);
}

TEST_CASE("a target that is no class is refused on the host and makes NaN on a device") {
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}}) {
    Tensor x = spread({3, 4}), target = integer_tensor({3}, {2, wrong, ignored});
    Tensor loss = unwritten({}), sums = unwritten({3}), dx = unwritten({3, 4});
    const std::string why = fmt::format("target {} is not one of 4 classes", wrong);
    CHECK(refusal(Kernel::cross_entropy_forward, {}, {&x, &target}, {&loss, &sums}) ==
          "cross_entropy_forward: " + why);
    CHECK(refusal(Kernel::nll_loss_forward, {}, {&x, &target}, {&loss}) ==
          "nll_loss_forward: " + why);
    CHECK(refusal(Kernel::nll_loss_backward, {}, {&x, &target}, {&dx}) ==
          "nll_loss_backward: " + why);

    run_on_device(Kernel::cross_entropy_forward, {}, {x.argument(), target.argument()},
                  {loss.argument(), sums.argument()});
    CHECK(std::isnan(loss.floats[0]));
    CHECK(std::ranges::none_of(sums.floats, [](float sum) { return std::isnan(sum); }));
    run_on_device(Kernel::nll_loss_forward, {}, {x.argument(), target.argument()},
                  {loss.argument()});
    CHECK(std::isnan(loss.floats[0]));
    run_on_device(Kernel::nll_loss_backward, {}, {x.argument(), target.argument()},
                  {dx.argument()});
    for (std::size_t i = 0; i < 12; ++i) CHECK(std::isnan(dx.floats[i]) == (i / 4 == 1));
    run_on_device(Kernel::cross_entropy_backward, {},
                  {x.argument(), target.argument(), sums.argument()}, {dx.argument()});
    for (std::size_t i = 0; i < 12; ++i) CHECK(std::isnan(dx.floats[i]) == (i / 4 == 1));
  }
}

TEST_CASE("gradients of losses over classes do not depend on how elements are parted") {
  // 19,200 elements: a device divides them into parts, the host does not.
  for (const Sizes& shape : {Sizes{64, 50, 6}, Sizes{384, 50}, Sizes{2, 3, 3200}}) {
    Sizes positions = shape;
    positions.erase(positions.begin() + 1);
    const auto classes = static_cast<std::size_t>(shape[1]);
    Tensor x = spread(shape), target = some_targets(positions, classes);
    for (const double smoothing : {0.0, 0.25}) {
      const Attributes attributes =
          attributes_of({{"label_smoothing", smoothing}, {"scale", 1000.0}});
      Tensor loss = unwritten({}), sums = unwritten(positions);
      run(Kernel::cross_entropy_forward, attributes, {&x, &target}, {&loss, &sums});
      CHECK(loss.floats[0] > 0);
      Tensor dx = x;
      run(Kernel::cross_entropy_backward, attributes, {&dx, &target, &sums}, {&dx});
      // In each line softmax and target both have the sum 1.
      const double sum = std::accumulate(dx.floats.begin(), dx.floats.end(), 0.0);
      CHECK(std::abs(sum) < 1e-3);
    }
    const Tensor dlogp = result(Kernel::nll_loss_backward, {}, {&x, &target}, shape);
    const double sum = std::accumulate(dlogp.floats.begin(), dlogp.floats.end(), 0.0);
    CHECK(sum == doctest::Approx(-1));
  }
}

TEST_CASE("the loss of a sure prediction keeps its digits, and infinite logits make no NaN") {
  Tensor x = tensor({1, 3}, {1000, 997, 997}), target = integer_tensor({1}, {0});
  Tensor loss = unwritten({}), sums = unwritten({1});
  run(Kernel::cross_entropy_forward, {}, {&x, &target}, {&loss, &sums});
  const double expected = std::log1p(2 * std::exp(-3.0));
  // In float32 the difference of sums[0] and 1000 would be off by 1e-4 of itself.
  CHECK(loss.floats[0] == doctest::Approx(expected).epsilon(1e-6));
  CHECK(sums.floats[0] == static_cast<float>(1000 + expected));

  Tensor masked = tensor({1, 3}, {1, 2, -INFINITY}), last = integer_tensor({1}, {2});
  run(Kernel::cross_entropy_forward, {}, {&masked, &last}, {&loss, &sums});
  CHECK(loss.floats[0] == INFINITY);
  CHECK(sums.floats[0] == doctest::Approx(std::log(std::exp(1.0) + std::exp(2.0))));
}

TEST_CASE("an ignored target may be one of the classes, and all may be ignored") {
  const Attributes attributes = attributes_of({{"ignore_index", std::int64_t{1}}});
  Tensor x = spread({2, 3}), target = integer_tensor({2}, {1, 2});
  CHECK(result(Kernel::nll_loss_forward, attributes, {&x, &target}, {}).floats[0] == -x.floats[5]);
  target.integers = {1, 1};
  CHECK(std::isnan(result(Kernel::nll_loss_forward, attributes, {&x, &target}, {}).floats[0]));
}

}  // namespace stowage::test
