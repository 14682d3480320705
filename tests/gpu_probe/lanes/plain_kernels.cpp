#include "tests/gpu_probe/lanes/plain_kernels.hpp"

#include "gpu_probe/kernels/rows/bias.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool seen_by_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool seen_by_sanitizer = true;
#else
constexpr bool seen_by_sanitizer = false;
#endif
#else
constexpr bool seen_by_sanitizer = false;
#endif

struct Element {
  const kernels::Matrices& of;
  std::int64_t offset;
  [[nodiscard]] float* at(std::int64_t row, std::int64_t column) const {
    if (of.transposed) std::swap(row, column);
    return reinterpret_cast<float*>(of.data) + offset + row * of.columns + column;
  }
};

void multiply(const kernels::Product& p) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const Element a{p.a, n * p.a.distance}, b{p.b, n * p.b.distance}, c{p.c, n * p.c.distance};
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += static_cast<double>(*a.at(i, k)) * static_cast<double>(*b.at(k, j));
        }
        float& result = *c.at(i, j);
        const double before = p.beta == 0 ? 0 : p.beta * static_cast<double>(result);
        result = static_cast<float>(p.alpha * sum + before);
      }
    }
  }
}

}  // namespace

Result<void> run_plain_kernel(const KernelCall& call) {
  if (!kernels::is_product(call.kernel)) return run_host_kernel(call);
  if (call.kernel == Kernel::linear_forward && call.reads.size() == 3) {
    const auto bias =
        kernels::rows_of_bias(call.writes[0], call.reads[2], kernels::Arithmetic::host);
    bias.run(bias.values.data(), 0, bias.count);
  }
  for (const kernels::Product& product : kernels::products_of(call)) multiply(product);
  return {};
}

RunKernel tested_kernels() { return seen_by_sanitizer ? run_plain_kernel : run_host_kernel; }
double tested_tolerance() { return seen_by_sanitizer ? 1e-4 : 0; }
bool has_convolutions() { return !seen_by_sanitizer; }

}  // namespace stowage::test
