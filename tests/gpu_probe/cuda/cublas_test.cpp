// Products by cuBLAS, on a pretended cuBLAS that follows its definition. Transpositions, sizes,
// distances and batches are right if the results equal the host's. Nothing here runs on a GPU.
#include "gpu_probe/cuda/cublas.hpp"

#include <array>

#include "gpu_probe/driver/shared_library.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_blas.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

FakeBlas& fake_blas() {
  static const SharedLibrary library(STOWAGE_FAKE_BLAS);
  static FakeBlasEntry entry = nullptr;
  if (entry == nullptr) REQUIRE(library.bind("fakeBlas", entry));
  return *entry();
}

Tensor whole_numbers(const Sizes& shape) {
  Tensor result = unwritten(shape);
  int i = 0;
  for (float& value : result.floats) value = static_cast<float>(i++ % 7 - 3);
  return result;
}

struct Question {
  Kernel kernel;
  AttributeList attributes;
  Sizes a, b, y;
};

/// A tensor of numbers in a format.
struct Formatted {
  Formatted(const Tensor& numbers, DataType format)
      : bytes(numbers.floats.size() * static_cast<std::size_t>(element_size(format))),
        argument{bytes.data(), format, numbers.shape} {
    const body::Floats to = kernels::any_floats(argument);
    for (std::size_t i = 0; i < numbers.floats.size(); ++i) {
      to.set(static_cast<body::Index>(i), double{numbers.floats[i]});
    }
  }
  std::vector<std::byte> bytes;
  TensorArgument argument;
};

/// Checks that cuBLAS's result equals the host's; all numbers are whole.
void check_product(Cublas& blas, const Question& question) {
  const Attributes attributes = attributes_of(question.attributes);
  for (const DataType format :
       {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    const Formatted a(whole_numbers(question.a), format), b(whole_numbers(question.b), format),
        y(unwritten(question.y), format), expected(unwritten(question.y), format);
    const std::vector<TensorArgument> reads{a.argument, b.argument}, writes{y.argument},
        of_host{expected.argument};
    KernelCall call{.kernel = question.kernel,
                    .device = Device::gpu,
                    .attributes = &attributes,
                    .reads = reads,
                    .writes = writes,
                    .engine = {},
                    .workspace = nullptr,
                    .workspace_bytes = {}};
    for (const kernels::Product& product : kernels::products_of(call)) {
      REQUIRE(blas.run(product, {}).has_value());
    }
    call.writes = of_host;
    REQUIRE(run_host_kernel(call).has_value());
    CHECK(y.bytes == expected.bytes);
  }
}

kernels::Product small_product(Tensor& a, Tensor& b, Tensor& c) {
  const auto matrix = [](Tensor& tensor) {
    return kernels::Matrices{tensor.argument().data, DataType::float32, 2};
  };
  return {.m = 2, .n = 2, .k = 2, .a = matrix(a), .b = matrix(b), .c = matrix(c)};
}

}  // namespace

TEST_CASE("cuBLAS is asked for the products that linear layers and matmul are") {
  fake_blas() = {};
  const auto blas = Cublas::open({STOWAGE_FAKE_BLAS});
  REQUIRE(blas.has_value());
  check_product(**blas, {Kernel::linear_forward, {}, {2, 3, 5}, {4, 5}, {2, 3, 4}});
  check_product(**blas, {Kernel::linear_backward_data, {}, {2, 3, 4}, {4, 5}, {2, 3, 5}});
  check_product(**blas, {Kernel::linear_backward_filter, {}, {2, 3, 5}, {2, 3, 4}, {4, 5}});
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const AttributeList attributes{
          {"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", 2.0}};
      const Sizes a = transpose_a ? Sizes{6, 2, 5, 3} : Sizes{6, 2, 3, 5};
      const Sizes b = transpose_b ? Sizes{6, 2, 4, 5} : Sizes{6, 2, 5, 4};
      const Sizes one_b = transpose_b ? Sizes{2, 4, 5} : Sizes{2, 5, 4};
      check_product(**blas, {Kernel::matmul, attributes, a, b, {6, 2, 3, 4}});
      check_product(**blas, {Kernel::matmul, attributes, a, one_b, {6, 2, 3, 4}});
      check_product(**blas, {Kernel::matmul, attributes, a, b, {2, 3, 4}});
    }
  }
  CHECK(fake_blas().products > 15);
}

TEST_CASE("a product goes to its stream, with its workspace and in its precision") {
  fake_blas() = {};
  Tensor a = whole_numbers({2, 2}), b = whole_numbers({2, 2}), c = unwritten({2, 2});
  {
    const auto blas = Cublas::open({"libno-such-blas.so", STOWAGE_FAKE_BLAS});
    REQUIRE(blas.has_value());
    kernels::Product product = small_product(a, b, c);
    alignas(256) std::byte workspace{};
    REQUIRE((*blas)->run(product, {&c, &workspace, Bytes(512), true}).has_value());
    CHECK(fake_blas().stream == &c);
    CHECK(fake_blas().workspace == &workspace);
    CHECK(fake_blas().workspace_bytes == 512);
    CHECK(fake_blas().compute == 77);  // CUBLAS_COMPUTE_32F_FAST_TF32
    REQUIRE((*blas)->run(product, {}).has_value());
    CHECK(fake_blas().workspace == nullptr);
    CHECK(fake_blas().compute == 68);  // CUBLAS_COMPUTE_32F
    for (const auto& [type, number, compute] :
         {std::tuple(DataType::float16, 2, 68), std::tuple(DataType::bfloat16, 14, 68),
          std::tuple(DataType::float64, 1, 70)}) {
      std::array<double, 12> room{};  // room for three matrices in any format
      kernels::Product other = product;
      std::size_t at = 0;
      for (kernels::Matrices* const matrices : {&other.a, &other.b, &other.c}) {
        *matrices = {reinterpret_cast<std::byte*>(&room[at++ * 4]), type, 2};
      }
      REQUIRE((*blas)->run(other, {.tf32 = true}).has_value());
      CHECK(fake_blas().type == number);
      CHECK(fake_blas().compute == compute);
    }
    fake_blas().gemm_fails = 15;
    CHECK((*blas)->run(product, {}).error().front().message ==
          "cublasLtMatmul fails with error 15");
    fake_blas().gemm_fails = 0;
    product.b.type = product.c.type = DataType::float64;
    CHECK((*blas)->run(product, {}).error().front().message ==
          "cuBLAS is given float32 times float64 to float64");
    product = small_product(a, b, c);
    product.batch = std::int64_t{1} << 32;
    CHECK((*blas)->run(product, {}).error().front().message ==
          "4294967296 products at once are too many for cuBLAS");
    CHECK(fake_blas().handles == 1);
  }
  CHECK(fake_blas().handles == 0);
  CHECK(fake_blas().descriptors == 0);
}

TEST_CASE("an algorithm is asked for once a form, and is content with the plan's workspace") {
  fake_blas() = {};
  Tensor a = whole_numbers({2, 2}), b = whole_numbers({2, 3}), c = unwritten({2, 2});
  const auto blas = Cublas::open({STOWAGE_FAKE_BLAS});
  REQUIRE(blas.has_value());
  const kernels::Product product = small_product(a, b, c);
  for (int i = 0; i < 3; ++i) REQUIRE((*blas)->run(product, {}).has_value());
  CHECK(fake_blas().questions == 1);
  CHECK(fake_blas().products == 3);
  kernels::Product turned = product;
  turned.a.transposed = true;
  REQUIRE((*blas)->run(turned, {}).has_value());
  CHECK(fake_blas().questions == 2);

  kernels::Product beside = product;
  beside.b.data += sizeof(float);
  REQUIRE((*blas)->run(beside, {}).has_value());
  CHECK(fake_blas().alignment == 4);

  fake_blas().wanted_workspace = 1024;
  const auto refused = (*blas)->run(product, {.workspace_bytes = Bytes(512)});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().front().message ==
        "cuBLAS has no algorithm here for a product of 2 x 2 x 2 in float32 with a workspace of "
        "512 B");
  REQUIRE((*blas)->run(product, {.workspace_bytes = Bytes(1024)}).has_value());
  fake_blas().gemm_fails = 14;
  CHECK((*blas)->run(product, {}).error().front().message == "cublasLtMatmul fails with error 14");
  fake_blas() = {};
}

TEST_CASE("a cuBLAS that is not there, is none, or does not start is said to be so") {
  const auto refusal = [](const std::vector<std::string>& files) {
    const auto blas = Cublas::open(files);
    return blas ? std::string() : blas.error().front().message;
  };
  CHECK(refusal({}) == "cuBLAS was not found: no file was named");
  CHECK(refusal({"libno-such-blas.so"}).starts_with("cuBLAS was not found: libno-such-blas.so"));
  CHECK(refusal({STOWAGE_STALE_KERNELS}).ends_with("is no cuBLASLt, or too old"));
  fake_blas() = {};
  fake_blas().create_fails = 1;
  CHECK(refusal({STOWAGE_FAKE_BLAS}) == "cublasLtCreate fails with error 1");
  fake_blas() = {};
}

}  // namespace stowage::test
