// Worked out by hand from ATen/native/cuda/Reduce.cuh; an H100's 75 and 18.75 MiB were measured.
#include "estimator/workspace/sum_scratch.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

constexpr ThreadCapacity h100{132, 2048}, rtx3090{82, 1536};

/// The gradient of a linear layer's bias: rows are summed.
TensorSum over_rows(std::int64_t rows, std::int64_t columns, DataType type = DataType::float32) {
  return {.type = type, .axes = {{rows, columns, true}, {columns, 1, false}}};
}

/// The gradient of a convolution's bias.
TensorSum to_channels(std::int64_t samples, std::int64_t channels, std::int64_t side) {
  const std::int64_t pixels = side * side;
  return {.axes = {{samples, channels * pixels, true},
                   {channels, pixels, false},
                   {side, side, true},
                   {side, 1, true}}};
}

}  // namespace

TEST_CASE("a bias's gradient takes what an H100 was seen to allocate") {
  CHECK(sum_scratch(over_rows(3152, 3072), h100) == 75_MiB);
  CHECK(sum_scratch(over_rows(3152, 768), h100) == 18_MiB + 768_KiB);
  CHECK(sum_scratch(over_rows(784, 3072), h100) == 0_B);
}

TEST_CASE("rows are split across blocks from 256 values a thread on") {
  CHECK(sum_scratch(over_rows(1020, 3072), h100) == 0_B);  // 255
  CHECK(sum_scratch(over_rows(1021, 3072), h100) == 24_MiB);
  CHECK(sum_scratch(over_rows(1024, 3072), h100) == 24_MiB);
}

TEST_CASE("partial sums are at least float32") {
  CHECK(sum_scratch(over_rows(3152, 3072, DataType::bfloat16), h100) == 75_MiB);
  CHECK(sum_scratch(over_rows(3152, 3072, DataType::float16), h100) == 75_MiB);
  CHECK(sum_scratch(over_rows(3152, 3072, DataType::float64), h100) == 150_MiB);
}

TEST_CASE("a card that runs fewer threads at once splits into fewer parts") {
  // 82 x 12 blocks, of which 24 go over the columns: 41 parts.
  CHECK(sum_scratch(over_rows(3152, 3072), rtx3090) == 61_MiB + 512_KiB);
  CHECK(sum_scratch(over_rows(3152, 3072), {}) == 0_B);
}

TEST_CASE("threads load as many outputs at once as divide columns, strides and offset") {
  CHECK(sum_scratch(over_rows(3152, 3073), h100) == 0_B);  // one: 16 threads high, 197 values
  CHECK(sum_scratch(over_rows(8192, 3073), h100) == 6 * (3073 * 128_B));
  CHECK(sum_scratch(over_rows(8192, 3074), h100) == 22 * (3074 * 256_B));  // two
  TensorSum moved = over_rows(8192, 3072);
  const Bytes whole = sum_scratch(moved, h100);
  moved.offset = 4;
  CHECK(sum_scratch(moved, h100) == whole);
  moved.offset = 2;
  // 48 blocks of 32 x 8 threads: 22 parts.
  CHECK(sum_scratch(moved, h100) == 22 * (3072 * 256_B));
  // Columns of a wider tensor: two at once.
  const TensorSum cut{.axes = {{8192, 3074, true}, {3072, 1, false}}};
  CHECK(sum_scratch(cut, h100) == 22 * (3072 * 256_B));
}

TEST_CASE("few outputs: blocks are narrow and high") {
  // 5 pairs of outputs: blocks of 4 x 64 threads, two of them, in 59 parts.
  CHECK(sum_scratch(over_rows(60'000, 10), h100) == 10 * (59 * 32_B));
}

TEST_CASE("outputs that fill the card are split only for threads of more than 256 values") {
  const DataType half = DataType::bfloat16;
  CHECK(sum_scratch(over_rows(2048, 300'000, half), h100) == 0_B);  // 2,344 blocks, of 2,112
  CHECK(sum_scratch(over_rows(2048, 270'336, half), h100) == 264_MiB);
  CHECK(sum_scratch(over_rows(1024, 270'336, half), h100) == 0_B);
}

TEST_CASE("axes that are one stretch of memory are one") {
  const TensorSum sequences{.axes = {{16, 605'184, true}, {197, 3072, true}, {3072, 1, false}}};
  CHECK(sum_scratch(sequences, h100) == 75_MiB);
  const TensorSum maps{.axes = {{3152, 3072, true}, {48, 64, false}, {64, 1, false}}};
  CHECK(sum_scratch(maps, h100) == 75_MiB);
  const TensorSum single{
      .axes = {{1, 7, true}, {3152, 3072, true}, {1, 9, false}, {3072, 1, false}}};
  CHECK(sum_scratch(single, h100) == 75_MiB);
}

TEST_CASE("a convolution's bias: threads share an output, which has one partial sum a block") {
  CHECK(sum_scratch(to_channels(16, 64, 112), h100) == 64 * 36_B);
  CHECK(sum_scratch(to_channels(1, 64, 112), h100) == 0_B);  // 25 values a thread
  CHECK(sum_scratch(to_channels(1, 64, 512), h100) == 64 * 36_B);
}

TEST_CASE("tensors past 2 GiB are summed in halves") {
  // 131,072 rows: 32,768 values a thread, so that 128 parts are needed.
  CHECK(sum_scratch(over_rows(131'072, 4096), h100) == 256_MiB);
  CHECK(sum_scratch(over_rows(262'144, 4096), h100) == 256_MiB);
  CHECK(sum_scratch(over_rows(262'144, 8192, DataType::bfloat16), h100) == 512_MiB + 32_KiB);
}

TEST_CASE("nothing to sum, and what no tensor is, take nothing") {
  CHECK(sum_scratch({}, h100) == 0_B);
  CHECK(sum_scratch(over_rows(1, 3072), h100) == 0_B);
  CHECK(sum_scratch({.axes = {{3072, 1, false}}}, h100) == 0_B);
  CHECK(sum_scratch({.axes = {{0, 3072, true}, {3072, 1, false}}}, h100) == 0_B);
  CHECK(sum_scratch({.axes = {{-4096, 3072, true}, {3072, 1, false}}}, h100) == 0_B);
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK_THROWS_AS((void)sum_scratch(over_rows(huge, huge), h100), ArithmeticOverflow);
  // Expanded: no memory, and more values than 32 bits count.
  const TensorSum expanded{.axes = {{1 << 20, 0, true}, {1 << 20, 0, false}}};
  CHECK(sum_scratch(expanded, h100) >= 0_B);
}

}  // namespace stowage
