// The gradient of an embedding's table, which a device collects in another way than the host.
#include <cmath>

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"
#include "tests/gpu_probe/kernels/device_arithmetic.hpp"

namespace stowage::test {
namespace {

/// Multiples of 1/4 below 4 in magnitude: few sums of them are rounded in any format.
float quarter(std::size_t i) { return static_cast<float>(static_cast<int>(i * 7 % 31) - 15) / 4; }

Tensor quarters(const Sizes& shape) {
  Tensor x = unwritten(shape);
  for (std::size_t i = 0; i < x.floats.size(); ++i) x.floats[i] = quarter(i);
  return x;
}

}  // namespace

TEST_CASE("a table's gradient is the sum of what arrives at each row") {
  // Few rows; tables with one row and with several rows in a tile; columns that a group of four
  // holds at once, and more.
  for (const std::int64_t rows : {3, 100, 1100}) {
    for (const std::int64_t width : {1, 6, 40}) {
      Tensor indices = integer_tensor({2, 75}, std::vector<std::int64_t>(150));
      for (std::size_t i = 0; i < 150; ++i) {
        // A few rows come often, others seldom, and the last one once.
        const auto at = static_cast<std::int64_t>(i);
        indices.integers[i] = i == 7 ? rows - 1 : i % 10 == 0 ? 2 : at * at % rows;
      }
      Tensor dy = quarters({2, 75, width});
      for (const std::int64_t padding : {std::int64_t{-1}, std::int64_t{2}}) {
        const Tensor dw =
            result(Kernel::embedding_backward, attributes_of({{"padding_index", padding}}),
                   {&indices, &dy}, {rows, width});
        std::vector<float> expected(dw.floats.size());
        const auto columns = static_cast<std::size_t>(width);
        for (std::size_t i = 0; i < 150; ++i) {
          if (indices.integers[i] == padding) continue;
          const auto row = static_cast<std::size_t>(indices.integers[i]) * columns;
          for (std::size_t j = 0; j < columns; ++j) {
            expected[row + j] += dy.floats[i * columns + j];
          }
        }
        CHECK(dw.floats == expected);
      }
    }
  }
}

TEST_CASE("a row's gradient of 16 bits is rounded once, whatever arrives at it") {
  // In bfloat16 256 + 1 is 256: a sum in that format would stay there.
  constexpr std::size_t count = 1500, width = 3;
  Tensor indices = integer_tensor({count}, std::vector<std::int64_t>(count, 1));
  indices.integers[7] = 0;
  std::vector<body::Bfloat16> dy(count * width), dw(2 * width);
  for (body::Bfloat16& one : dy) body::narrow(1.0F, one);
  const Attributes attributes = attributes_of({{"padding_index", std::int64_t{-1}}});
  const std::vector<TensorArgument> reads{
      indices.argument(),
      {reinterpret_cast<std::byte*>(dy.data()), DataType::bfloat16, {count, width}}},
      writes{{reinterpret_cast<std::byte*>(dw.data()), DataType::bfloat16, {2, width}}};
  REQUIRE(run_host_kernel({.kernel = Kernel::embedding_backward,
                           .device = Device::cpu,
                           .attributes = &attributes,
                           .reads = reads,
                           .writes = writes,
                           .engine = {},
                           .workspace = nullptr,
                           .workspace_bytes = {}})
              .has_value());
  for (std::size_t j = 0; j < width; ++j) {
    CHECK(body::widened(dw[j]) == 1);
    CHECK(body::widened(dw[width + j]) == 1496);  // 1499 rounded to a multiple of 8
  }
}

TEST_CASE("an index that a table lacks makes NaN on a device, and adds to no row") {
  Tensor table = quarters({100, 2}), dy = quarters({4, 2});
  Tensor y = unwritten({4, 2}), dw = unwritten({100, 2});
  std::vector<std::int32_t> indices{1, 100, -1, 99};
  run_on_device(Kernel::embedding_forward, {},
                {argument_of(indices, DataType::int32), table.argument()}, {y.argument()});
  for (std::size_t j = 0; j < 2; ++j) {
    CHECK(y.floats[j] == table.floats[2 + j]);
    CHECK(std::isnan(y.floats[2 + j]));
    CHECK(std::isnan(y.floats[4 + j]));
    CHECK(y.floats[6 + j] == table.floats[198 + j]);
  }
  run_on_device(Kernel::embedding_backward, {},
                {argument_of(indices, DataType::int32), dy.argument()}, {dw.argument()});
  std::vector<float> expected(200);
  for (std::size_t j = 0; j < 2; ++j) {
    expected[2 + j] = dy.floats[j];
    expected[198 + j] = dy.floats[6 + j];
  }
  CHECK(dw.floats == expected);
}

}  // namespace stowage::test
