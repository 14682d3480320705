// Calibrates kernels on the host backend, whose "GPU" is the host. The measured values say nothing
// about a card, but they are measured, fitted and written in the same way.
#include "gpu_probe/run/calibrate_kernels.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/card/card_file.hpp"
#include "planner/problem/rates.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {
namespace {

const std::string models = testing::source_path("/configs/models");

/// Refuses other types than float32, like a backend without such kernels.
class SingleBackend final : public test::WrappedBackend {
  Result<Ticket> run(const KernelCall& call) override {
    if (!call.reads.empty() && call.reads[0].type == DataType::bfloat16) {
      return failure("no bfloat16 here");
    }
    return WrappedBackend::run(call);
  }
};

}  // namespace

TEST_CASE("the kernels of shipped models are timed, and the shares go into a card's rates") {
  SingleBackend backend;
  const Card card = generic_card(8_GiB);
  const std::vector<SampledStep> samples{
      {"mnist-cnn", 8, Precision::fp32}, {"mlp", 8, Precision::fp32}, {"mlp", 8, Precision::bf16}};
  const auto calibrated = calibrate_kernels(backend, card, samples, models, 1_GiB);
  REQUIRE_MESSAGE(calibrated.has_value(), calibrated.error().front().message);
  CHECK(calibrated->kernels > 20);
  REQUIRE(calibrated->left_out.size() == 1);
  CHECK(calibrated->left_out[0].starts_with("mlp in bf16: node '"));
  CHECK(calibrated->left_out[0].ends_with("no bfloat16 here"));
  CHECK(calibrated->fitted.launch > 0);

  const auto read =
      read_calibration(std::make_shared<SourceText>(SourceText{
                           .name = "here.yaml", .text = kernel_shares_yaml(*calibrated)}),
                       card);
  REQUIRE_MESSAGE(read.has_value(), read.error().front().message);
  CHECK(read->kernel_shares.size() == calibrated->fitted.fits.size());
  const Rates rates =
      make_rates(*read, {.memory = 1_GiB, .cpu_flops = 1e9, .memory_bandwidth = 1e9});
  CHECK(rates.gpu_launch == doctest::Approx(calibrated->fitted.launch).epsilon(0.01));
  for (const KindFit& fit : calibrated->fitted.fits) {
    const KindShare& fitted = calibrated->fitted.rates.share(fit.kind);
    CHECK(rates.gpu_kernels->share(fit.kind).arithmetic ==
          doctest::Approx(fitted.arithmetic).epsilon(0.01).scale(0.01));
    CHECK(rates.gpu_kernels->share(fit.kind).bandwidth ==
          doctest::Approx(fitted.bandwidth).epsilon(0.01).scale(0.01));
  }
}

TEST_CASE("where nothing can be timed the first reason is told") {
  SingleBackend backend;
  const std::vector<SampledStep> samples{{"mlp", 8, Precision::bf16}};
  const auto refused = calibrate_kernels(backend, generic_card(8_GiB), samples, models, 1_GiB);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().front().message.starts_with("mlp in bf16: "));
  CHECK(!calibrate_kernels(backend, generic_card(8_GiB), {}, models, 1_GiB).has_value());
  const std::vector<SampledStep> unknown{{"no-such-model", 8, Precision::fp32}};
  CHECK(!calibrate_kernels(backend, generic_card(8_GiB), unknown, models, 1_GiB).has_value());
}

TEST_CASE("the usual samples are shipped models in two formats") {
  for (const double capability : {7.5, 9.0}) {
    const std::vector<SampledStep> samples = default_samples(capability);
    CHECK(samples.size() == 16);
    CHECK(samples.front().precision == Precision::fp32);
    CHECK(samples.back().precision == (capability < 8 ? Precision::fp16 : Precision::bf16));
  }
}

}  // namespace stowage
