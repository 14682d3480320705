#include "answers/report/sizing_pages.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "answers/subject/replicas.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

namespace {

/// The limit of its pool; without pools, its equal share of what the card leaves.
Bytes room_of_replica(const CheckReport& report, std::int64_t replicas) {
  if (report.run.pools && !report.run.pools->empty()) return report.run.pools->front().limit;
  const Bytes room = report.available_bytes - (report.device_bytes - report.reserved_bytes());
  return Bytes(room.count() / replicas);
}

/// `report`: a check of the same step at that batch.
Result<StepPicture> picture_of(const StepSetup& setup, std::int64_t batch,
                               const CheckReport& report) {
  auto sized = setup.at_batch(batch);
  if (!sized) return tl::unexpected(std::move(sized.error()));
  const StepDocument& document = setup.step.document;
  StepPicture picture{
      .batch = batch,
      .replicas = replica_count(setup.step.settings),
      .memory = memory_over_step(*sized, setup.card.card, setup.step.settings, report.run),
      .has_costs = document.has_costs,
      .room = room_of_replica(report, replica_count(setup.step.settings))};
  picture.layers = layer_rows(document, sized->batch, picture.memory);
  return picture;
}

/// A quarter of the batch, half of it, the batch, twice that; 1; and the largest, where it is
/// known.
std::set<std::int64_t> batches_around(const CheckAnswer& found) {
  const std::int64_t parts = replica_count(found.settings);
  const std::int64_t each = std::max<std::int64_t>(1, found.batch / parts);
  std::set<std::int64_t> batches{1, std::max<std::int64_t>(1, each / 4),
                                 std::max<std::int64_t>(1, each / 2), each};
  if (2 * each <= largest_searched_batch) batches.insert(2 * each);
  if (found.cures && found.cures->largest.batch > 0) {
    batches.insert(found.cures->largest.batch / parts);
  }
  std::set<std::int64_t> of_all;
  for (const std::int64_t batch : batches) of_all.insert(batch * parts);
  return of_all;
}

std::vector<CurvePoint> curve_around(const StepSetup& setup, const CheckAnswer& found) {
  std::vector<CurvePoint> curve;
  if (setup.step.document.fixed_batch) return curve;
  for (const std::int64_t batch : batches_around(found)) {
    if (batch == found.batch) {
      curve.push_back({batch, found.training.device_bytes});
      continue;
    }
    const auto sized = setup.at_batch(batch);
    if (!sized) continue;  // sizes beyond 64 bits: the batch itself is not shown
    curve.push_back({batch, check(*sized, setup.card.card, setup.step.settings).device_bytes});
  }
  return curve;
}

}  // namespace

Result<CheckPage> check_page(const CheckQuestion& question) {
  const auto setup = set_up_check(question, true);
  if (!setup) return tl::unexpected(setup.error());
  auto found = answer(question, *setup);
  if (!found) return tl::unexpected(std::move(found.error()));
  auto step = picture_of(*setup, found->batch, found->training);
  if (!step) return tl::unexpected(std::move(step.error()));
  std::vector<CurvePoint> curve = curve_around(*setup, *found);
  return CheckPage{*std::move(found), *std::move(step), std::move(curve)};
}

Result<BatchPage> batch_page(const BatchQuestion& question) {
  const auto setup = set_up_batch(question, true);
  if (!setup) return tl::unexpected(setup.error());
  auto found = answer(question, *setup);
  if (!found) return tl::unexpected(std::move(found.error()));
  const BatchReport& report = found->report;
  const auto shown = [&]() -> std::pair<std::int64_t, const CheckReport*> {
    if (report.at_recommended) return {report.recommended, &*report.at_recommended};
    if (report.at_largest) return {report.largest, &*report.at_largest};
    return {replica_count(found->settings), &report.at_one.value()};
  }();
  auto step = picture_of(*setup, shown.first, *shown.second);
  if (!step) return tl::unexpected(std::move(step.error()));
  std::vector<CurvePoint> curve = report.curve;
  if (std::ranges::find(curve, shown.first, &CurvePoint::batch) == curve.end()) {
    curve.push_back({shown.first, shown.second->device_bytes});
    std::ranges::sort(curve, {}, &CurvePoint::batch);
  }
  return BatchPage{*std::move(found), *std::move(step), std::move(curve)};
}

}  // namespace stowage
