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

struct Elements {
  explicit Elements(const kernels::Matrices& matrices, std::int64_t number)
      : of(matrices),
        offset(number * matrices.distance),
        floats(kernels::any_floats({matrices.data, matrices.type, {}})) {}

  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t column) const {
    if (of.transposed) std::swap(row, column);
    return offset + row * of.columns + column;
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return floats.at<double>(place(row, column));
  }

  const kernels::Matrices& of;
  std::int64_t offset;
  body::Floats floats;
};

void multiply(const kernels::Product& p) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const Elements a(p.a, n), b(p.b, n), c(p.c, n);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) sum += a.at(i, k) * b.at(k, j);
        const double before = p.beta == 0 ? 0 : p.beta * c.at(i, j);
        c.floats.set(c.place(i, j), p.alpha * sum + before);
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
