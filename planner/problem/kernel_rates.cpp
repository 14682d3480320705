#include "planner/problem/kernel_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace stowage {

namespace {

// Shares of a specification. "Fitted": to the half of the RTX 3090's training steps that
// bench/rates uses for fitting (timm, autocast, channels last). "Titan V": operators timed one by
// one in the logs of uwsampl/dtr-prototype (fp32, 652.8 GB/s, 14.9 TFLOP/s).
constexpr double vector_share = 0.83;       // Titan V: mm of 5120 x 2048 x 512, 12.4 TFLOP/s
constexpr double half_tensor_share = 0.94;  // fitted; GeForce's, whose fp32 accumulation is halved
constexpr double tensor_share = 0.80;       // A100 0.81, B200 0.78, B300 0.79 (ml-engineering)
constexpr double bandwidth_share = 0.85;    // Titan V: threshold_backward 0.87, softmax 0.85

// Shares of the sustained rates, in the order of KernelKind.
constexpr std::array<KindShare, all_kernel_kinds.size()> kind_shares{{
    {1, 1},       // convolution
    {1, 1},       // grouped: the padding of few channels to whole tiles is all that differs
    {0.07, 0.6},  // depthwise: arithmetic fitted (0.058 of the specification), traffic as below
    {1, 1},       // product
    {0.75, 1},    // attention: 0.6 of an A100's specification (FlashAttention-2, 2023: 0.5 to 0.73)
    {1, 0.6},     // normalization: two passes; Titan V: batch norm moves 321 to 335 GB/s
    {1, 1},       // pointwise
    {1, 0.5},     // update: foreach reads and writes its lists anew for each operation
}};

constexpr double wide_tile = 128, narrow_tile = 64, tile_depth = 32;
constexpr double narrow_tile_rate = 0.75;  // chosen with the fitted shares
constexpr double split_depth = 4096;

bool is_calibrated(const Card& card, std::string_view key) {
  return std::ranges::find(card.calibrated, key) != card.calibrated.end();
}

bool has_tensor_cores(const Card& card) {
  if (card.compute_capability >= 8) return true;
  // Turing without tensor cores (GTX 16) computes fp16 at twice the fp32 rate.
  return card.compute_capability >= 7 && card.fp16_flops > 2.5 * card.fp32_flops;
}

/// GeForce's tensor cores accumulate in fp32 at half their rate: 4 times the fp32 rate for Turing,
/// 2 times since.
bool has_half_rate(const Card& card) {
  const double multiple = card.fp16_flops / card.fp32_flops;
  return card.compute_capability < 8 ? multiple < 6 : multiple < 3;
}

/// fp64 units for each fp32 unit (CUDA programming guide, "Arithmetic Instructions").
double fp64_per_fp32(const Card& card) {
  const double capability = card.compute_capability;
  if (capability == 6.0 || capability == 7.0 || capability == 8.0 || capability == 9.0 ||
      capability == 10.0) {
    return 1.0 / 2;
  }
  if (capability < 3.5) return 1.0 / 24;
  if (capability < 5) return 1.0 / 3;
  return capability < 8 ? 1.0 / 32 : 1.0 / 64;
}

double padded(double extent, double tile) { return std::ceil(extent / tile) * tile; }

struct Tile {
  double extent = 0, rate = 1;
};
constexpr std::array<Tile, 2> tiles{{{wide_tile, 1}, {narrow_tile, narrow_tile_rate}}};

/// The operations that a product in such tiles computes for each operation that it needs.
double overhead(const KernelWork& work, double multiprocessors, Tile row, Tile column) {
  const double rows = padded(work.rows, row.extent), columns = padded(work.columns, column.extent);
  const double depth = padded(work.depth, tile_depth);
  const double count = rows / row.extent * (columns / column.extent) * work.products *
                       std::max(1.0, depth / split_depth);
  const double occupancy = multiprocessors > count ? count / multiprocessors : 1;
  return rows / work.rows * (columns / work.columns) * (depth / work.depth) /
         (row.rate * column.rate * occupancy);
}

double operations(const KernelRates& rates, const KernelWork& work) {
  if (work.rows <= 0) return work.flops;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile row : tiles) {
    for (const Tile column : tiles) {
      least = std::min(least, overhead(work, rates.multiprocessors, row, column));
    }
  }
  return work.flops * least;
}

}  // namespace

KernelRates kernel_rates(const Card& card) {
  const bool has_tensors = has_tensor_cores(card);
  const double product_share = has_half_rate(card) ? half_tensor_share : tensor_share;
  const auto sustained = [&](std::string_view key, double flops, double share) {
    return is_calibrated(card, key) ? flops : flops * share;
  };
  const double fp32 = sustained("fp32", card.fp32_flops, vector_share);
  const double tf32 = sustained("tf32", card.tf32_flops, product_share);
  const double fp16 =
      sustained("fp16", card.fp16_flops, has_tensors ? product_share : vector_share);
  KernelRates rates{.multiprocessors = static_cast<double>(card.sm_count), .kinds = kind_shares};
  // Libraries use the vector units where they are faster. Ampere is the first with bf16.
  rates.formats = {fp32 * fp64_per_fp32(card), fp32, std::max(fp32, tf32), std::max(fp32, fp16),
                   card.compute_capability >= 8 ? std::max(fp32, fp16) : fp32};
  for (const KernelShare& seen : card.kernel_shares) {
    KindShare& share = rates.kinds[static_cast<std::size_t>(seen.kind)];
    share = {seen.arithmetic.value_or(share.arithmetic), seen.bandwidth.value_or(share.bandwidth)};
  }
  return rates;
}

double sustained_bandwidth(const Card& card) {
  return is_calibrated(card, "memory_bandwidth") ? card.memory_bandwidth
                                                 : card.memory_bandwidth * bandwidth_share;
}

double seconds_for(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

namespace {

/// A matrix times a vector, or the attention of one query: libraries have kernels for these that
/// use no tiles and no tensor cores.
bool is_of_a_vector(const KernelWork& work) {
  const bool multiplies = work.kind == KernelKind::product || work.kind == KernelKind::attention;
  return multiplies && work.rows > 0 && std::min(work.rows, work.columns) == 1;
}

double tiled_seconds(const KernelRates& rates, double bandwidth, const KernelWork& work) {
  const KindShare& share = rates.share(work.kind);
  const double rate = rates.rate(work.format), fp32 = rates.rate(MathFormat::fp32);
  const bool reorders = rate > fp32;
  const double counted = operations(rates, work);
  const auto seconds = [&](double flops, double bytes) {
    return std::max(seconds_for(counted, flops * share.arithmetic),
                    seconds_for(bytes, bandwidth * share.bandwidth));
  };
  const double taken = seconds(rate, work.bytes + (reorders ? 2 * work.reordered_bytes : 0));
  if (work.format != MathFormat::tf32 || !reorders) return taken;
  return std::min(taken, seconds(fp32, work.bytes));
}

}  // namespace

double kernel_seconds(const KernelRates& rates, double bandwidth, const KernelWork& work) {
  const double tiled = tiled_seconds(rates, bandwidth, work);
  if (!is_of_a_vector(work)) return tiled;
  const KindShare& share = rates.share(work.kind);
  const MathFormat of_vectors =
      work.format == MathFormat::fp64 ? MathFormat::fp64 : MathFormat::fp32;
  return std::min(tiled,
                  std::max(seconds_for(work.flops, rates.rate(of_vectors) * share.arithmetic),
                           seconds_for(work.bytes, bandwidth * share.bandwidth)));
}

}  // namespace stowage
