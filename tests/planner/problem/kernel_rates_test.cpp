// The rates of a GPU's kernels, and that each figure is that of the definition.
#include "planner/problem/kernel_rates.hpp"

#include <doctest/doctest.h>

#include <random>

#include "estimator/card/card_file.hpp"
#include "planner/problem/rates.hpp"

namespace stowage {
namespace {

Card card_of(double compute_capability, double fp32, double tf32, double fp16) {
  Card card;
  card.compute_capability = compute_capability;
  card.sm_count = 80;
  card.fp32_flops = fp32;
  card.tf32_flops = tf32;
  card.fp16_flops = fp16;
  card.memory_bandwidth = 1e12;
  return card;
}
Card a100() { return card_of(8.0, 19.5e12, 156e12, 312e12); }
Card rtx3090() { return card_of(8.6, 35.6e12, 35.6e12, 71.2e12); }

KernelWork product(double rows, double columns, double depth,
                   MathFormat format = MathFormat::fp16) {
  return {.kind = KernelKind::product,
          .format = format,
          .flops = 2 * rows * columns * depth,
          .rows = rows,
          .columns = columns,
          .depth = depth};
}

double seconds(const Card& card, const KernelWork& work) {
  return kernel_seconds(kernel_rates(card), sustained_bandwidth(card), work);
}

/// Operations a second.
double reached(const Card& card, const KernelWork& work) {
  return work.flops / seconds(card, work);
}

}  // namespace

TEST_CASE("kernel rates: each format has its own rate") {
  const auto of = [](const Card& card, MathFormat format) {
    return doctest::Approx(reached(card, product(4096, 4096, 4096, format)) / 1e12);
  };
  CHECK(0.80 * 312 == of(a100(), MathFormat::fp16));
  CHECK(0.80 * 312 == of(a100(), MathFormat::bf16));
  CHECK(0.80 * 156 == of(a100(), MathFormat::tf32));
  CHECK(0.83 * 19.5 == of(a100(), MathFormat::fp32));
  CHECK(0.83 * 19.5 / 2 == of(a100(), MathFormat::fp64));
  // GeForce's tensor cores accumulate at half rate, and reach more of it; its fp64 is 1/64.
  CHECK(0.94 * 71.2 == of(rtx3090(), MathFormat::fp16));
  CHECK(0.94 * 35.6 == of(rtx3090(), MathFormat::tf32));
  CHECK(0.83 * 35.6 / 64 == of(rtx3090(), MathFormat::fp64));
  // A V100 has tensor cores for fp16 alone.
  const Card v100 = card_of(7.0, 15.7e12, 0, 125e12);
  CHECK(0.80 * 125 == of(v100, MathFormat::fp16));
  CHECK(0.83 * 15.7 == of(v100, MathFormat::bf16));
  CHECK(0.83 * 15.7 == of(v100, MathFormat::tf32));
  // A GTX 1660 Ti has none, but fp16 units; a GTX 1080 computes fp16 in fp32.
  CHECK(0.83 * 10.9 == of(card_of(7.5, 5.44e12, 0, 10.9e12), MathFormat::fp16));
  CHECK(0.83 * 8.87 == of(card_of(6.1, 8.87e12, 0, 8.87e12), MathFormat::fp16));
}

TEST_CASE("kernel rates: extents are padded to tiles") {
  const double full = reached(a100(), product(4096, 4096, 4096));
  // 4096 x 64: half of a wide tile, or a narrow one at three quarters of the rate.
  CHECK(reached(a100(), product(65536, 64, 4096)) == doctest::Approx(0.75 * full));
  CHECK(reached(a100(), product(65536, 32, 4096)) == doctest::Approx(0.375 * full));
  CHECK(reached(a100(), product(65536, 128, 4096)) == doctest::Approx(full));
  CHECK(reached(a100(), product(65536, 128, 16)) == doctest::Approx(0.5 * full));
  // 192 columns: 256 of the wide tiles cost as much as 192 of the narrow ones.
  CHECK(reached(a100(), product(65536, 192, 4096)) == doctest::Approx(0.75 * full));
}

TEST_CASE("kernel rates: a small product does not fill the card") {
  const double full = reached(a100(), product(4096, 4096, 4096));
  // 512 x 512: 16 wide tiles or 64 narrow ones for 80 multiprocessors.
  CHECK(reached(a100(), product(512, 512, 1024)) == doctest::Approx(0.75 * 0.75 * 64 / 80 * full));
  // A deep one is shared out along its depth.
  CHECK(reached(a100(), product(512, 512, 40960)) == doctest::Approx(full));
  KernelWork batched = product(512, 512, 1024);
  batched.products = 5;
  batched.flops *= 5;
  CHECK(reached(a100(), batched) == doctest::Approx(full));
  Card unknown = a100();
  unknown.sm_count = 0;
  CHECK(reached(unknown, product(512, 512, 1024)) == doctest::Approx(full));
}

TEST_CASE("kernel rates: a matrix times a vector waits for the matrix") {
  // A token's product with 4096 x 14336 values of two bytes.
  for (KernelWork work : {product(1, 14336, 4096), product(14336, 1, 4096)}) {
    work.bytes = 2.0 * 4096 * 14336;
    CHECK(seconds(a100(), work) == doctest::Approx(work.bytes / (0.85 * 1e12)));
    work.bytes = 0;  // the vector units' operations
    CHECK(reached(a100(), work) == doctest::Approx(0.83 * 19.5e12));
  }
  KernelWork attention = product(1, 128, 128);
  attention.kind = KernelKind::attention;
  CHECK(reached(a100(), attention) == doctest::Approx(0.75 * 0.83 * 19.5e12));
  // Two tokens are a product in tiles; a convolution of one channel is one, too.
  CHECK(reached(a100(), product(2, 14336, 4096)) < 0.83 * 19.5e12);
  KernelWork convolution = product(1, 14336, 4096);
  convolution.kind = KernelKind::convolution;
  CHECK(reached(a100(), convolution) < 0.83 * 19.5e12);
  CHECK(seconds(a100(), product(1, 14336, 4096)) <= seconds(a100(), product(2, 14336, 4096)));
}

TEST_CASE("kernel rates: traffic by kind") {
  const auto share = [](KernelKind kind) {
    return doctest::Approx(1e9 / seconds(rtx3090(), {.kind = kind, .bytes = 1e9}) / 1e12);
  };
  CHECK(0.85 == share(KernelKind::pointwise));
  CHECK(0.85 == share(KernelKind::convolution));
  CHECK(0.85 * 0.6 == share(KernelKind::normalization));
  CHECK(0.85 * 0.6 == share(KernelKind::depthwise_convolution));
  CHECK(0.85 * 0.5 == share(KernelKind::update));
}

TEST_CASE("kernel rates: operands are reordered for tensor cores alone") {
  KernelWork work{.kind = KernelKind::convolution, .bytes = 1e9, .reordered_bytes = 1e9};
  const double once = 1e9 / (0.85 * 1e12);
  const auto times_in = [&](const Card& card, MathFormat format) {
    work.format = format;
    return doctest::Approx(seconds(card, work) / once);
  };
  CHECK(3 == times_in(a100(), MathFormat::fp16));
  CHECK(1 == times_in(a100(), MathFormat::fp32));
  CHECK(1 == times_in(a100(), MathFormat::fp64));
  const Card pascal = card_of(6.1, 8.87e12, 0, 8.87e12);
  CHECK(1 == times_in(pascal, MathFormat::fp16));
  CHECK(1 == times_in(pascal, MathFormat::tf32));
  // What TF32 does not speed up runs in fp32, as the operands lie: 1 as long as it is traffic that
  // limits it, then the fp32 time, and from 3 on tensor cores.
  CHECK(1 == times_in(a100(), MathFormat::tf32));
  work.flops = 2 * once * 0.83 * 19.5e12;
  CHECK(2 == times_in(a100(), MathFormat::tf32));
  work.flops *= 2;
  CHECK(3 == times_in(a100(), MathFormat::tf32));
}

TEST_CASE("kernel rates: the time never falls as an extent grows") {
  const KernelRates rates = kernel_rates(a100());
  std::mt19937 random(7);
  const auto any = [&](int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(1, most)(random));
  };
  for (int i = 0; i < 4000; ++i) {
    const double rows = any(2000), columns = any(700), depth = any(9000), by = any(90);
    const double least = kernel_seconds(rates, 1e12, product(rows, columns, depth)) * (1 - 1e-12);
    CHECK(kernel_seconds(rates, 1e12, product(rows + by, columns, depth)) >= least);
    CHECK(kernel_seconds(rates, 1e12, product(rows, columns + by, depth)) >= least);
    CHECK(kernel_seconds(rates, 1e12, product(rows, columns, depth + by)) >= least);
  }
}

TEST_CASE("kernel rates: a calibration's figures are what kernels reach") {
  const std::string text =
      "fp32: 17 TFLOP/s\n"
      "fp16: 260 TFLOP/s\n"
      "memory_bandwidth: 1300 GB/s\n";
  Card card = a100();
  card.cuda_total = 40_GiB;
  card.h2d_bandwidth = card.d2h_bandwidth = 25e9;
  const auto source = std::make_shared<const SourceText>(SourceText{"here.yaml", text});
  const auto calibrated = read_calibration(source, card);
  REQUIRE(calibrated);
  CHECK(calibrated->calibrated == std::vector<std::string>{"memory_bandwidth", "fp32", "fp16"});
  CHECK(reached(*calibrated, product(4096, 4096, 4096)) == doctest::Approx(260e12));
  CHECK(reached(*calibrated, product(4096, 4096, 4096, MathFormat::fp32)) ==
        doctest::Approx(17e12));
  // Not measured, so by the specification.
  CHECK(reached(*calibrated, product(4096, 4096, 4096, MathFormat::tf32)) ==
        doctest::Approx(0.80 * 156e12));
  CHECK(1e9 / seconds(*calibrated, {.bytes = 1e9}) == doctest::Approx(1300e9));
}

TEST_CASE("rates: no kernel is quicker than its launch") {
  StepGraph graph;
  graph.nodes.resize(1);
  SizedStep step;
  step.graph = std::make_shared<const StepGraph>(std::move(graph));
  step.flops = {1};
  step.bytes_moved = {4};
  const Rates rates = make_rates(a100(), Host{});
  CHECK(gpu_seconds(rates, step, NodeId{0}) == doctest::Approx(5e-6));
  CHECK(gpu_seconds(rates, step, NodeId{0}) >= rates.gpu_launch);
}

}  // namespace stowage
