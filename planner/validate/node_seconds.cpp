#include "planner/validate/node_seconds.hpp"

#include <algorithm>
#include <cmath>

#include "estimator/memory/kernel_work.hpp"

namespace stowage {

namespace {

/// The operations of all tiles of `rows` by `columns`, 32 deep, as if every multiprocessor were
/// busy, divided by the operations that are needed.
double cost_of_tiling(const KernelWork& work, double multiprocessors, double rows, double columns) {
  const double tall = std::ceil(work.rows / rows), wide = std::ceil(work.columns / columns);
  const double deep = std::ceil(work.depth / 32) * 32;
  const double parts = tall * wide * work.products * std::max(1.0, deep / 4096);
  const double padded = (tall * rows) * (wide * columns) * deep;
  double cost = padded / (work.rows * work.columns * work.depth);
  if (rows == 64) cost /= 0.75;
  if (columns == 64) cost /= 0.75;
  return parts < multiprocessors ? cost * multiprocessors / parts : cost;
}

double seconds_in_tiles(const KernelRates& rates, double bandwidth, const KernelWork& work) {
  double operations = work.flops;
  if (work.rows > 0) {
    const double count = rates.multiprocessors;
    operations *= std::min(
        std::min(cost_of_tiling(work, count, 128, 128), cost_of_tiling(work, count, 128, 64)),
        std::min(cost_of_tiling(work, count, 64, 128), cost_of_tiling(work, count, 64, 64)));
  }
  const KindShare share = rates.share(work.kind);
  const double fp32 = rates.rate(MathFormat::fp32), rate = rates.rate(work.format);
  const double as_they_are = seconds_at(work.bytes, bandwidth * share.bandwidth);
  if (rate <= fp32) return std::max(seconds_at(operations, rate * share.arithmetic), as_they_are);
  const double reordering =
      seconds_at(work.bytes + 2 * work.reordered_bytes, bandwidth * share.bandwidth);
  const double on_tensor_cores =
      std::max(seconds_at(operations, rate * share.arithmetic), reordering);
  if (work.format != MathFormat::tf32) return on_tensor_cores;
  const double in_fp32 = std::max(seconds_at(operations, fp32 * share.arithmetic), as_they_are);
  return std::min(on_tensor_cores, in_fp32);
}

/// A product with one row or one column, or attention of one query, also has a kernel without
/// tiles, on the vector units.
double busy_seconds(const KernelRates& rates, double bandwidth, const KernelWork& work) {
  const double in_tiles = seconds_in_tiles(rates, bandwidth, work);
  const bool multiplies = work.kind == KernelKind::product || work.kind == KernelKind::attention;
  if (!multiplies || work.rows <= 0 || (work.rows != 1 && work.columns != 1)) return in_tiles;
  const KindShare share = rates.share(work.kind);
  const double rate =
      rates.rate(work.format == MathFormat::fp64 ? MathFormat::fp64 : MathFormat::fp32);
  const double computing = seconds_at(work.flops, rate * share.arithmetic);
  const double moving = seconds_at(work.bytes, bandwidth * share.bandwidth);
  return std::min(in_tiles, std::max(computing, moving));
}

}  // namespace

double node_seconds(const Plan& plan, std::size_t node, const Processor& processor) {
  if (!processor.node_seconds.empty()) return processor.node_seconds[node];
  if (processor.kernels) {
    const KernelWork work = kernel_work(plan.step, NodeId::of(node));
    return processor.launch + busy_seconds(*processor.kernels, processor.bandwidth, work);
  }
  // The roofline: the larger of computing and moving, plus a launch.
  const double computing = seconds_at(plan.step.flops[node], processor.flops);
  const double moving = seconds_at(plan.step.bytes_moved[node], processor.bandwidth);
  return std::max(computing, moving) + processor.launch;
}

double node_seconds(const Plan& plan, std::size_t node) {
  return node_seconds(plan, node, plan.machine.processor(plan.nodes[node].processor));
}

double copy_seconds(const Plan& plan, StorageId storage, const Link& link) {
  return link.latency +
         seconds_at(static_cast<double>(plan.bytes(storage).count()), link.bandwidth);
}

}  // namespace stowage
