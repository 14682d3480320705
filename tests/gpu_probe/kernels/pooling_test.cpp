// Windows, from outputs and from inputs, and pooling with large windows.
#include <cmath>

#include "gpu_probe/kernels/bodies/windows.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

bool holds(const body::Window& window, std::int64_t i) {
  for (std::int64_t at = window.begin; at < window.end; at += window.step) {
    if (at == i) return true;
  }
  return false;
}

/// Whether the pairs of an output and an input in its window are the same from both sides.
bool same_from_both_sides(const body::WindowAxis& axis) {
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const body::Window window = axis.window(o);
    if (window.begin < 0 || window.end > axis.in || window.begin >= window.end) return false;
    std::int64_t held = 0;
    for (std::int64_t i = 0; i < axis.in; ++i) {
      const body::Takers takers = axis.takers(i);
      if (takers.begin < 0 || takers.end > axis.out) return false;
      const bool taken = o >= takers.begin && o < takers.end && axis.takes(window, i);
      if (taken != holds(window, i)) return false;
      if (taken) ++held;
    }
    if (held != window.count()) return false;
  }
  return true;
}

Tensor waves(const Sizes& shape) {
  Tensor x = unwritten(shape);
  for (std::size_t i = 0; i < x.floats.size(); ++i) {
    x.floats[i] = std::sin(static_cast<float>(i) * 0.7F);
  }
  return x;
}

}  // namespace

TEST_CASE("an output takes the inputs that it is found among the takers of") {
  for (std::int64_t in = 1; in <= 9; ++in) {
    for (std::int64_t out = 1; out <= 12; ++out) {
      CHECK(same_from_both_sides({in, out, 0, 1, 0, 1, true}));
    }
  }
  std::size_t tried = 0;
  for (std::int64_t in = 1; in <= 9; ++in) {
    for (std::int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (std::int64_t stride = 1; stride <= 4; ++stride) {
        for (std::int64_t dilation = 1; dilation <= 3; ++dilation) {
          for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
            const std::int64_t reach = (kernel - 1) * dilation + 1;
            // Ceil mode: the last window begins within the padded input.
            for (std::int64_t out = 1; (out - 1) * stride < in + padding; ++out) {
              const body::WindowAxis axis{in, out, kernel, stride, padding, dilation, true};
              const body::Window last = axis.window(out - 1), first = axis.window(0);
              if (in + 2 * padding < reach || last.begin >= last.end || first.begin >= first.end) {
                continue;
              }
              bool inside = true;
              for (std::int64_t o = 0; o < out; ++o) {
                inside = inside && axis.window(o).begin < axis.window(o).end;
              }
              if (!inside) continue;
              ++tried;
              CHECK(same_from_both_sides(axis));
            }
          }
        }
      }
    }
  }
  CHECK(tried > 1000);
}

TEST_CASE("averages of large windows are the means of their planes") {
  for (const Sizes& area : {Sizes{50}, Sizes{7, 6}, Sizes{3, 4, 5}}) {
    Sizes shape{2, 3}, one{2, 3};
    shape.insert(shape.end(), area.begin(), area.end());
    one.insert(one.end(), area.size(), 1);
    Tensor x = waves(shape);
    const std::size_t elements_each = elements(area);
    for (const Tensor& y :
         {result(Kernel::adaptive_avg_pool_forward, {}, {&x}, one),
          result(Kernel::avg_pool_forward, attributes_of({{"kernel", area}}), {&x}, one)}) {
      for (std::size_t plane = 0; plane < 6; ++plane) {
        double sum = 0;
        for (std::size_t i = 0; i < elements_each; ++i) {
          sum += x.floats[plane * elements_each + i];
        }
        CHECK(y.floats[plane] ==
              doctest::Approx(sum / static_cast<double>(elements_each)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("windows with holes between their taps pool both ways") {
  Tensor x = waves({1, 2, 9, 8});
  const Attributes attributes = attributes_of({{"kernel", Sizes{3, 2}},
                                               {"stride", Sizes{2, 2}},
                                               {"padding", Sizes{1, 0}},
                                               {"dilation", Sizes{3, 2}}});
  // The definition: each window's largest element, which gets the gradient.
  Tensor y = unwritten({1, 2, 3, 3}), indices = integer_tensor(y.shape, Sizes(18));
  Tensor dy = waves(y.shape);
  run(Kernel::max_pool_forward, attributes, {&x}, {&y, &indices});
  std::vector<float> expected(x.floats.size());
  for (std::size_t o = 0; o < 18; ++o) {
    const std::size_t plane = o / 9 * 72;
    double best = -HUGE_VAL;
    std::size_t where = 0;
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 2; ++b) {
        const int row = static_cast<int>(o % 9 / 3) * 2 - 1 + a * 3;
        const int column = static_cast<int>(o % 3) * 2 + b * 2;
        if (row < 0 || row >= 9) continue;
        const std::size_t at = plane + static_cast<std::size_t>(row * 8 + column);
        if (x.floats[at] > best) {
          best = x.floats[at];
          where = at;
        }
      }
    }
    CHECK(y.floats[o] == best);
    CHECK(indices.integers[o] == static_cast<std::int64_t>(where - plane));
    expected[where] += dy.floats[o];
  }
  const Tensor dx = result(Kernel::max_pool_backward, attributes, {&x, &y, &dy}, x.shape);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(dx.floats[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

TEST_CASE("pooling refuses windows that no input is in") {
  Tensor x = waves({1, 1, 4}), y = unwritten({1, 1, 3});
  CHECK(refusal(Kernel::avg_pool_forward, attributes_of({{"kernel", std::int64_t{2}}}), {&x},
                {&y}) == "avg_pool_forward: output [1, 1, 3] is too large for input [1, 1, 4]");
  CHECK(refusal(Kernel::avg_pool_forward,
                attributes_of({{"kernel", std::int64_t{2}}, {"stride", std::int64_t{0}}}), {&x},
                {&y}) == "avg_pool_forward: a window of 2, by steps of 0, padding 0, dilation 1");
}

}  // namespace stowage::test
