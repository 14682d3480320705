// Conversions between floating-point formats, by their bits.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A 16-bit tensor with these bits as its elements.
Tensor half_tensor(DataType type, const std::vector<std::uint16_t>& bits) {
  Tensor tensor{{static_cast<std::int64_t>(bits.size())}, type, {}, {}, {}};
  for (const std::uint16_t value : bits) {
    tensor.bytes.push_back(static_cast<std::uint8_t>(value & 0xff));
    tensor.bytes.push_back(static_cast<std::uint8_t>(value >> 8));
  }
  return tensor;
}

std::vector<std::uint16_t> narrowed(DataType type, const std::vector<float>& values) {
  Tensor x = tensor({static_cast<std::int64_t>(values.size())}, values);
  Tensor y = half_tensor(type, std::vector<std::uint16_t>(values.size()));
  REQUIRE(try_run(Kernel::cast, {}, {&x}, {&y}).has_value());
  std::vector<std::uint16_t> bits;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bits.push_back(static_cast<std::uint16_t>(y.bytes[2 * i] | y.bytes[2 * i + 1] << 8));
  }
  return bits;
}

float widened(DataType type, std::uint16_t bits) {
  Tensor x = half_tensor(type, {bits});
  Tensor y = unwritten({1});
  REQUIRE(try_run(Kernel::cast, {}, {&x}, {&y}).has_value());
  return y.floats[0];
}

}  // namespace

TEST_CASE("float32 to 16 bits: nearest, ties to even, subnormal numbers, infinity") {
  CHECK(
      narrowed(DataType::float16, {1.0F, -2.5F, 65504.0F, 65519.996F, 65520.0F, 0x1p-24F, 0x1p-25F,
                                   0x1.8p-25F, 1.0F + 0x1p-11F, 1.0F + 0x1.8p-10F, -infinity}) ==
      std::vector<std::uint16_t>{0x3c00, 0xc100, 0x7bff, 0x7bff, 0x7c00, 0x0001, 0x0000, 0x0001,
                                 0x3c00, 0x3c02, 0xfc00});
  CHECK(narrowed(DataType::bfloat16,
                 {1.0F, -2.5F, 1.0F + 0x1p-8F, 1.0F + 0x1.8p-7F, 3.4028235e38F, -infinity}) ==
        std::vector<std::uint16_t>{0x3f80, 0xc020, 0x3f80, 0x3f82, 0x7f80, 0xff80});
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    CHECK(std::isnan(widened(type, narrowed(type, {std::nanf("")})[0])));
  }
}

TEST_CASE("every 16-bit number survives the way to float32 and back") {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    const unsigned exponent = type == DataType::float16 ? 0x7c00 : 0x7f80;
    std::vector<float> wide;
    std::vector<std::uint16_t> numbers;
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      if ((bits & exponent) == exponent && (bits & 0x7fff) != exponent) continue;  // not numbers
      numbers.push_back(static_cast<std::uint16_t>(bits));
    }
    Tensor x = half_tensor(type, numbers);
    Tensor y = unwritten({static_cast<std::int64_t>(numbers.size())});
    REQUIRE(try_run(Kernel::cast, {}, {&x}, {&y}).has_value());
    CHECK(narrowed(type, y.floats) == numbers);
  }
}

TEST_CASE("integers become numbers, and numbers integers towards zero") {
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;  // no double
  Tensor x = integer_tensor({3}, {3, -7, large});
  Tensor y = unwritten({3});
  REQUIRE(try_run(Kernel::cast, {}, {&x}, {&y}).has_value());
  CHECK(y.floats == std::vector<float>{3, -7, 0x1p53F});
  Tensor back = integer_tensor({3}, {0, 0, 0});
  REQUIRE(try_run(Kernel::cast, {}, {&x}, {&back}).has_value());
  CHECK(back.integers == x.integers);
  Tensor halves = tensor({2}, {2.75F, -2.75F});
  Tensor whole = integer_tensor({2}, {0, 0});
  REQUIRE(try_run(Kernel::cast, {}, {&halves}, {&whole}).has_value());
  CHECK(whole.integers == std::vector<std::int64_t>{2, -2});
}

}  // namespace stowage::test
