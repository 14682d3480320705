#include "planner/problem/fit_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "estimator/base/median.hpp"

namespace stowage {
namespace {

constexpr double least_launches = 3;    // a kernel of less than so many says little about a rate
constexpr double unlimited_rate = 1e9;  // a rate that limits nothing

/// The seconds of a kernel if its kind had this share.
double seconds_with(KernelRates rates, double bandwidth, const KernelWork& work, KindShare share) {
  rates.kinds[static_cast<std::size_t>(work.kind)] = share;
  return kernel_seconds(rates, bandwidth, work);
}

KindShare fitted_share(const KernelRates& rates, double bandwidth, double launch,
                       std::span<const KernelSample> samples, KernelKind kind, KindFit& fit) {
  const KindShare nominal = rates.share(kind);
  std::vector<double> arithmetic, traffic;
  for (const KernelSample& sample : samples) {
    const double beyond = sample.seconds - launch;
    if (sample.work.kind != kind || beyond < least_launches * launch) continue;
    const double computing = seconds_with(rates, bandwidth, sample.work, {1, unlimited_rate});
    const double moving = seconds_with(rates, bandwidth, sample.work, {unlimited_rate, 1});
    if (computing / nominal.arithmetic > moving / nominal.bandwidth) {
      arithmetic.push_back(computing / beyond);
    } else if (moving > 0) {
      traffic.push_back(moving / beyond);
    }
  }
  fit.by_arithmetic = std::ssize(arithmetic);
  fit.by_bandwidth = std::ssize(traffic);
  return {
      arithmetic.empty() ? nominal.arithmetic : median(std::move(arithmetic), MiddleValue::upper),
      traffic.empty() ? nominal.bandwidth : median(std::move(traffic), MiddleValue::upper)};
}

double median_error(const FittedRates& fitted, double bandwidth,
                    std::span<const KernelSample> samples, KernelKind kind) {
  std::vector<double> errors;
  for (const KernelSample& sample : samples) {
    if (sample.work.kind != kind) continue;
    const double predicted = fitted.launch + kernel_seconds(fitted.rates, bandwidth, sample.work);
    errors.push_back(std::abs(predicted - sample.seconds) / sample.seconds);
  }
  return median(std::move(errors), MiddleValue::upper);
}

}  // namespace

FittedRates fit_rates(const KernelRates& rates, double bandwidth,
                      std::span<const KernelSample> samples) {
  FittedRates fitted{.rates = rates};
  if (samples.empty()) return fitted;
  fitted.launch = std::ranges::min_element(samples, {}, &KernelSample::seconds)->seconds;
  for (const KernelKind kind : all_kernel_kinds) {
    if (std::ranges::find(samples, kind, [](const KernelSample& s) { return s.work.kind; }) ==
        samples.end()) {
      continue;
    }
    KindFit fit{.kind = kind};
    fitted.rates.kinds[static_cast<std::size_t>(kind)] =
        fitted_share(rates, bandwidth, fitted.launch, samples, kind, fit);
    fitted.fits.push_back(fit);
  }
  for (KindFit& fit : fitted.fits) {
    fit.median_error = median_error(fitted, bandwidth, samples, fit.kind);
  }
  return fitted;
}

}  // namespace stowage
