// Against what PyTorch itself chooses: tests/reference/convolution_backends.py.
#include "estimator/memory/native_convolution.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

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
  std::ifstream file(STOWAGE_SOURCE_DIR "/tests/reference/convolution_backends.json");
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
