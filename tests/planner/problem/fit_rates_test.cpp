#include "planner/problem/fit_rates.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace stowage {
namespace {

constexpr double bandwidth = 800e9;

KernelRates nominal_rates() {
  KernelRates rates{.multiprocessors = 80};
  rates.formats = {1e12, 20e12, 40e12, 80e12, 80e12};
  return rates;
}

KernelWork square_product(double side, MathFormat format) {
  return {.kind = KernelKind::product,
          .format = format,
          .flops = 2 * side * side * side,
          .bytes = 12 * side * side,
          .rows = side,
          .columns = side,
          .depth = side};
}

KernelWork traffic(KernelKind kind, double bytes) {
  return {.kind = kind, .flops = bytes / 8, .bytes = bytes};
}

std::vector<KernelSample> timed(const KernelRates& rates, double launch,
                                const std::vector<KernelWork>& works) {
  std::vector<KernelSample> samples;
  for (const KernelWork& work : works) {
    samples.push_back({work, launch + kernel_seconds(rates, bandwidth, work)});
  }
  return samples;
}

}  // namespace

TEST_CASE("the shares that kernels were timed with are found again") {
  KernelRates truth = nominal_rates();
  truth.kinds[static_cast<std::size_t>(KernelKind::product)] = {0.7, 0.9};
  truth.kinds[static_cast<std::size_t>(KernelKind::normalization)] = {1, 0.45};
  std::vector<KernelWork> works{traffic(KernelKind::pointwise, 0)};
  for (const double side : {1024.0, 2048.0, 4096.0, 8192.0}) {
    works.push_back(square_product(side, MathFormat::fp32));
    works.push_back(square_product(side, MathFormat::fp16));
    works.push_back(traffic(KernelKind::normalization, 1024 * side * side));
  }
  const FittedRates fitted = fit_rates(nominal_rates(), bandwidth, timed(truth, 4e-6, works));
  CHECK(fitted.launch == doctest::Approx(4e-6));
  CHECK(fitted.rates.share(KernelKind::product).arithmetic == doctest::Approx(0.7));
  CHECK(fitted.rates.share(KernelKind::normalization).bandwidth == doctest::Approx(0.45));
  CHECK(fitted.rates.share(KernelKind::convolution) == KindShare{});  // none was timed
  REQUIRE(fitted.fits.size() == 3);
  CHECK(fitted.fits[0].kind == KernelKind::product);
  CHECK(fitted.fits[0].by_arithmetic == 8);
  CHECK(fitted.fits[0].by_bandwidth == 0);
  CHECK(fitted.fits[1].by_bandwidth == 4);
  for (const KindFit& fit : fitted.fits) CHECK(fit.median_error == doctest::Approx(0));
}

TEST_CASE("one kernel that took far longer than it should moves no median") {
  KernelRates truth = nominal_rates();
  std::vector<KernelWork> works{traffic(KernelKind::pointwise, 0)};
  for (int i = 1; i <= 9; ++i) works.push_back(traffic(KernelKind::pointwise, i * 100e6));
  std::vector<KernelSample> samples = timed(truth, 5e-6, works);
  samples[4].seconds *= 20;
  const FittedRates fitted = fit_rates(nominal_rates(), bandwidth, samples);
  CHECK(fitted.rates.share(KernelKind::pointwise).bandwidth == doctest::Approx(1));
}

TEST_CASE("without kernels, or with ones that are all launch, shares stay") {
  CHECK(fit_rates(nominal_rates(), bandwidth, {}).rates == nominal_rates());
  CHECK(fit_rates(nominal_rates(), bandwidth, {}).launch == 0);
  const std::vector<KernelWork> works(3, traffic(KernelKind::pointwise, 1000));
  const FittedRates fitted =
      fit_rates(nominal_rates(), bandwidth, timed(nominal_rates(), 5e-6, works));
  CHECK(fitted.rates == nominal_rates());
  CHECK(fitted.fits.front().by_bandwidth == 0);
}

}  // namespace stowage
