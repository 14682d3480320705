// Against what PyTorch itself chooses: tests/reference/convolution_backends.py.
#include "estimator/workspace/native_convolution.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_directory.hpp"

using namespace stowage;

namespace {

DataType type_of(const std::string& name) {
  if (name == "fp16") return DataType::float16;
  if (name == "bf16") return DataType::bfloat16;
  return name == "fp64" ? DataType::float64 : DataType::float32;
}

/// The layout that a lowered step would state: float64 has one only.
TensorLayout layout_of(const std::string& name, DataType type) {
  return name == "channels_last" && type != DataType::float64 ? TensorLayout::channels_last
                                                              : TensorLayout::contiguous;
}

}  // namespace

TEST_CASE("PyTorch's own depthwise kernels run where PyTorch says so") {
  std::ifstream file(testing::source_path("/tests/reference/convolution_backends.json"));
  const nlohmann::json reference = nlohmann::json::parse(file);
  int native = 0, half_in_cudnn = 0;
  for (const auto& row : reference["cases"]) {
    const std::string text = row.dump();
    CAPTURE(text);
    const DataType type = type_of(row[7]);
    const ConvolutionQuery query{.type = type,
                                 .x = row[0],
                                 .w = row[1],
                                 .stride = row[2],
                                 .padding = row[3],
                                 .dilation = row[4],
                                 .groups = row[6],
                                 .layout = layout_of(row[8], type)};
    const std::string backend = row[9];
    const bool is_native = backend.starts_with("CudaDepthwise");
    CHECK((is_native || backend.starts_with("Cudnn")));
    CHECK(is_native_in_pytorch(query, row[5]) == is_native);
    native += is_native ? 1 : 0;
    half_in_cudnn += !is_native && query.groups > 4 && type == DataType::float16 ? 1 : 0;
  }
  CHECK(native > 100);
  CHECK(half_in_cudnn > 30);
}

TEST_CASE("bf16 before compute capability 8.0 is unfolded, a sample at a time") {
  const ConvolutionQuery query{.type = DataType::bfloat16,
                               .x = {8, 64, 56, 56},
                               .w = {128, 64, 3, 3},
                               .y = {8, 128, 28, 28},
                               .stride = {2, 2},
                               .padding = {1, 1},
                               .dilation = {1, 1}};
  CHECK(is_unfolded_in_pytorch(query, 7.5));
  CHECK_FALSE(is_unfolded_in_pytorch(query, 8.0));
  CHECK(unfolding_bytes(query, false) == Bytes(2 * 64 * 9 * 28 * 28));
  ConvolutionQuery half = query;
  half.type = DataType::float16;
  CHECK_FALSE(is_unfolded_in_pytorch(half, 7.0));

  ConvolutionQuery pointwise = query;
  pointwise.w = {128, 64, 1, 1};
  pointwise.y = {8, 128, 56, 56};
  pointwise.stride = {1, 1};
  pointwise.padding = {0, 0};
  CHECK(unfolding_bytes(pointwise, false) == Bytes());
  CHECK(unfolding_bytes(pointwise, true) == Bytes(2 * 64 * 56 * 56));

  ConvolutionQuery grouped = query;
  grouped.groups = 4;
  grouped.w = {128, 16, 3, 3};
  const std::int64_t x = 2 * 8 * 64 * 56 * 56, w = 2 * 128 * 16 * 9, y = 2 * 8 * 128 * 28 * 28;
  const std::int64_t columns = 2 * 16 * 9 * 28 * 28;
  CHECK(unfolding_bytes(grouped, false) == Bytes(columns + y + (x + w) / 4));
  grouped.direction = ConvolutionCall::Direction::backward_filter;
  CHECK(unfolding_bytes(grouped, false) == Bytes(columns + w + (x + y) / 4));
}
