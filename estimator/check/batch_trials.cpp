#include "estimator/check/batch_trials.hpp"

#include <algorithm>
#include <cmath>

#include "estimator/runtime/sum_workspaces.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"

namespace stowage {

namespace {

constexpr std::int64_t kernels_a_question = 2000;
constexpr std::int64_t ample_workspace_factor = 8;
// Chosen on 18 shipped networks on cards of 1.5 to 39 GiB and checked on 9 others: of 7,844 batches
// that did not complete none left so much beside what was live, and room for the workspaces.
constexpr std::int64_t fragmentation_percent = 30;
constexpr Bytes least_fragmentation = 1_GiB;
constexpr std::int64_t fine_guess = 64;  // a guess is about as near as a search's first stride

Bytes operand_bytes(const WorkspaceQuery& query) {
  if (const auto* convolution = std::get_if<ConvolutionQuery>(&query)) {
    const DataType type = convolution->type;
    return bytes_of(convolution->x, type) + bytes_of(convolution->w, type) +
           bytes_of(convolution->y, type);
  }
  const auto& attention = std::get<AttentionQuery>(query);
  const DataType type = attention.type;
  return bytes_of(attention.query.shape, type) + bytes_of(attention.key.shape, type) +
         bytes_of(attention.value.shape, type);
}

Bytes least_workspace(const std::vector<Engine>& engines) {
  return std::ranges::min(engines, {}, &Engine::workspace).workspace;
}

bool runs_calmly(const CheckReport& report) {
  return report.fits && report.run.process().releases == 0 && report.run.settles();
}

}  // namespace

WorkspaceAnswer CountingSource::engines(const ConvolutionQuery& query) {
  asked_ += convolutions_.insert(query).second ? 1 : 0;
  return source_.engines(query);
}

WorkspaceAnswer CountingSource::attention_engines(const AttentionQuery& query) {
  asked_ += attention_.insert(query).second ? 1 : 0;
  return source_.attention_engines(query);
}

BatchTrials::BatchTrials(std::shared_ptr<const StepGraph> graph, const Card& card,
                         const CheckSettings& settings, WorkspaceSource& source,
                         std::int64_t budget, std::shared_ptr<SharedReplays> replays)
    : graph_(std::move(graph)),
      card_(card),
      settings_(settings),
      source_(source),
      budget_(budget),
      run_price_(1 + static_cast<std::int64_t>(graph_->nodes.size()) / kernels_a_question),
      granularity_(runtime_granularity(settings.runtime)),
      limit_(allocator_limit(*graph_, card, settings)),
      buffers_(runtime_buffers(*graph_, card, settings)),
      touches_(storage_touches(*graph_)),
      replays_(std::move(replays)) {
  for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
    if (wants_workspace(graph_->nodes[i])) askers_.push_back(i);
    if (takes_sum_workspace(*graph_, graph_->nodes[i])) sums_.push_back(i);
  }
  ceiling_ = find_ceiling();
}

bool BatchTrials::completes_here(const SizedStep& step) const {
  if (!replays_ || limit_ < Bytes()) return stowage::completes(step, card_, settings_);
  return replays_->at_limit(limit_, step, touches_).completes;
}

Result<SizedStep> BatchTrials::sized_on_card(std::int64_t batch, WorkspaceSource& source) const {
  Result<SizedStep> step = size_step(graph_, batch, source, SizedParts::memory);
  if (!step) return step;
  return with_sum_workspaces(*std::move(step), card_);
}

std::optional<std::vector<Bytes>> BatchTrials::live_without_workspaces(std::int64_t batch) const {
  const Result<SizedStep> sized = size_storages(graph_, batch, SizedParts::memory);
  if (!sized) return std::nullopt;  // a size overflows
  return live_bytes(*sized,
                    {.granularity = granularity_, .buffers = buffers_, .with_workspaces = false},
                    touches_);
}

bool BatchTrials::tensors_fit(std::int64_t batch) const {
  const auto live = live_without_workspaces(batch);
  return live && (live->empty() || std::ranges::max(*live) <= limit_);
}

std::int64_t BatchTrials::find_ceiling() const {
  if (!tensors_fit(1)) return 0;
  std::int64_t fits = 1;
  std::int64_t too_large = 2;
  while (too_large <= largest_searched_batch && tensors_fit(too_large)) {
    fits = too_large;
    too_large *= 2;
  }
  if (too_large > largest_searched_batch) return largest_searched_batch;
  while (too_large - fits > 1) {
    const std::int64_t middle = fits + (too_large - fits) / 2;
    (tensors_fit(middle) ? fits : too_large) = middle;
  }
  return fits;
}

std::int64_t BatchTrials::likely_largest(Bytes spare) const {
  const std::unique_ptr<WorkspaceSource> rule = rule_workspace_source(card_.compute_capability);
  const auto likely = [&](std::int64_t batch) {
    const Result<SizedStep> step = sized_on_card(batch, *rule);
    if (!step) return false;
    const std::vector<Bytes> live =
        live_bytes(*step, {.granularity = granularity_, .buffers = buffers_}, touches_);
    return live.empty() || std::ranges::max(live) <= limit_ - spare;
  };
  std::int64_t fits = 1;
  std::int64_t fails = ceiling_ + 1;
  while (fails - fits > 1 + fits / fine_guess) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (likely(middle) ? fits : fails) = middle;
  }
  return fits;
}

std::int64_t BatchTrials::likely_calm(std::int64_t tried, Bytes spare) {
  const Result<SizedStep> step = sized_on_card(tried, source_);
  if (!step || !replays_) return std::min(tried, likely_largest(spare));
  const ReplayOutcome run = replays_->without_limit(*step, touches_);
  const auto at_one = live_without_workspaces(1);
  const Bytes fixed = at_one && !at_one->empty() ? std::ranges::max(*at_one) : Bytes();
  const Bytes room = limit_ - spare - fixed;
  const Bytes grown = run.reserved - fixed;
  if (room <= Bytes()) return 1;
  if (grown <= room) return tried;
  const double share = static_cast<double>(room.count()) / static_cast<double>(grown.count());
  return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(tried)));
}

bool BatchTrials::least_workspaces_fit(std::int64_t batch) {
  const auto live = live_without_workspaces(batch);
  if (!live || (!live->empty() && std::ranges::max(*live) > limit_)) return false;
  std::vector<std::size_t> nodes = askers_;
  std::ranges::stable_sort(nodes, std::greater(), [&](std::size_t node) { return (*live)[node]; });
  return std::ranges::all_of(nodes, [&](std::size_t node) {
    const KernelNode& kernel = graph_->nodes[node];
    const WorkspaceQuery query = workspace_query(*graph_, kernel, batch);
    const auto answer = workspace_engines(*graph_, kernel, query, source_);
    return round_up(least_workspace(answer.engines), granularity_) <= limit_ - (*live)[node];
  });
}

Result<bool> BatchTrials::completes(std::int64_t batch) {
  const auto found = completes_.find(batch);
  if (found != completes_.end()) return found->second;
  const std::int64_t asked = source_.asked();
  bool completes = false;
  // Below one that completes it is all but certain: asking beforehand would save nothing.
  if (batch < largest_completing_ || least_workspaces_fit(batch)) {
    const Result<SizedStep> step = sized_on_card(batch, source_);
    if (!step) return tl::unexpected(step.error());
    completes = completes_here(*step);
  }
  count_run();
  price_ = std::max(price_, source_.asked() - asked + run_price_);
  completes_.emplace(batch, completes);
  if (completes) largest_completing_ = std::max(largest_completing_, batch);
  return completes;
}

Result<bool> BatchTrials::completes_calmly(std::int64_t batch, Bytes spare) {
  const Result<SizedStep> step = sized_on_card(batch, source_);
  if (!step) return tl::unexpected(step.error());
  count_run();
  if (replays_ && limit_ >= Bytes()) {
    const LimitedReplay run = replays_->at_limit(limit_, *step, touches_);
    const Bytes available = card_.cuda_total - settings_.in_use - settings_.reserve;
    const Bytes taken = run.taken.reserved + outside_allocator(*graph_, card_, settings_);
    return run.nothing_refused() && run.taken.settles && available - taken >= spare;
  }
  if (!stowage::completes(*step, card_, settings_)) return false;
  if (!traits(settings_.runtime).takes_whole_card) {
    const CheckReport report = stowage::check(*step, card_, settings_);
    return runs_calmly(report) && report.headroom >= spare;
  }
  // Its pool takes all that there is: it has to do with a smaller one.
  CheckSettings settings = settings_;
  settings.in_use += spare;
  return stowage::completes(*step, card_, settings) &&
         runs_calmly(stowage::check(*step, card_, settings));
}

Result<CheckReport> BatchTrials::check_at(std::int64_t batch) {
  const Result<SizedStep> step = size_step(graph_, batch, source_);
  if (!step) return tl::unexpected(step.error());
  count_run();
  return stowage::check(*step, card_, settings_);
}

Bytes BatchTrials::fragmentation() const {
  if (traits(settings_.runtime).allocator == AllocatorKind::none) return {};
  return std::max(least_fragmentation, Bytes(limit_.count() / 100 * fragmentation_percent));
}

bool BatchTrials::has_ample_room(std::int64_t batch) {
  const auto live = live_without_workspaces(batch);
  if (!live) return false;
  const Bytes limit = limit_ - fragmentation();
  if (!live->empty() && std::ranges::max(*live) > limit) return false;
  // A sum's buffer is at most 4.3 times what is summed, where 16-bit values are.
  const bool sums_fit = std::ranges::all_of(sums_, [&](std::size_t node) {
    const StorageId summed = graph_->nodes[node].reads.front().storage;
    const Bytes operand(graph_->storage(summed).bytes.at(batch));
    return limit - (*live)[node] >= ample_workspace_factor * operand;
  });
  if (!sums_fit) return false;
  return std::ranges::all_of(askers_, [&](std::size_t node) {
    const WorkspaceQuery query = workspace_query(*graph_, graph_->nodes[node], batch);
    return limit - (*live)[node] >= ample_workspace_factor * operand_bytes(query);
  });
}

std::optional<std::int64_t> BatchTrials::smallest_failing() const {
  for (const auto& [batch, completes] : completes_) {
    if (!completes) return batch;
  }
  return std::nullopt;
}

}  // namespace stowage
