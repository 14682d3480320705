#include "estimator/check/batch_search.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace stowage {

namespace {

constexpr std::int64_t assumed_workspace_factor = 8;
constexpr Bytes least_fragmentation = 1_GiB;
constexpr int most_calm_tries = 32;
constexpr double unfragmented_share = 0.6;     // see find_batch
constexpr std::size_t most_remembered = 4096;  // answers; a sweep over batches asks each but once

/// Sizes a graph at one batch after another, asking each distinct question once.
class Trial {
 public:
  Trial(std::shared_ptr<const StepGraph> graph, const Card& card, const CheckSettings& settings,
        WorkspaceSource& source)
      : graph_(std::move(graph)),
        settings_(settings),
        source_(source),
        granularity_(runtime_granularity(settings.runtime)),
        limit_(allocator_limit(*graph_, card, settings)),
        buffers_(runtime_buffers(*graph_, card, settings)),
        touches_(storage_touches(*graph_)) {
    for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
      if (wants_workspace(graph_->nodes[i])) askers_.push_back(i);
    }
  }

  /// Live bytes by step, without workspaces; nullopt where a size overflows.
  [[nodiscard]] std::optional<std::vector<Bytes>> live_without_workspaces(std::int64_t batch) {
    const Result<SizedStep> sized = size_storages(graph_, batch);
    if (!sized) return std::nullopt;
    return live_bytes(*sized,
                      {.granularity = granularity_, .buffers = buffers_, .with_workspaces = false},
                      touches_);
  }

  [[nodiscard]] bool tensors_fit(std::int64_t batch) {
    const auto live = live_without_workspaces(batch);
    return live && within_limit(*live);
  }

  /// Whether the step completes. With `assume`, a kernel that has assumed_workspace_factor
  /// times its operands to spare is taken to find an engine. The tightest are asked first.
  [[nodiscard]] bool completes(std::int64_t batch, bool assume) {
    const auto live = live_without_workspaces(batch);
    if (!live || !within_limit(*live)) return false;
    std::vector<std::size_t> nodes = askers_;
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](std::size_t a, std::size_t b) { return (*live)[a] > (*live)[b]; });
    return std::all_of(nodes.begin(), nodes.end(), [&](std::size_t node) {
      const Bytes room = limit_ - (*live)[node];
      const WorkspaceQuery query = workspace_query(*graph_, graph_->nodes[node], batch);
      if (assume && room >= assumed_workspace_factor * operand_bytes(query)) return true;
      return round_up(least_workspace(node, query), granularity_) <= room;
    });
  }

  /// Whether every kernel has so much to spare that `completes` would ask about none, if there
  /// were `slack` less memory.
  [[nodiscard]] bool completes_unasked(std::int64_t batch, Bytes slack = {}) {
    const auto live = live_without_workspaces(batch);
    if (!live) return false;
    const Bytes limit = limit_ - slack;
    if (!live->empty() && std::ranges::max(*live) > limit) return false;
    return std::all_of(askers_.begin(), askers_.end(), [&](std::size_t node) {
      const WorkspaceQuery query = workspace_query(*graph_, graph_->nodes[node], batch);
      return limit - (*live)[node] >= assumed_workspace_factor * operand_bytes(query);
    });
  }

  /// The step with the workspaces that are assumed, but for kernels to which that would be more
  /// than half of what is left for them: they have those that the source says.
  [[nodiscard]] std::optional<SizedStep> assumed_step(std::int64_t batch) {
    const auto rooms = this->rooms(batch);
    Result<SizedStep> step = size_storages(graph_, batch);
    if (!rooms || !step) return std::nullopt;
    for (std::size_t i = 0; i < askers_.size(); ++i) {
      const KernelNode& node = graph_->nodes[askers_[i]];
      const WorkspaceQuery query = workspace_query(*graph_, node, batch);
      const Bytes workspace = assumed_workspace_factor * operand_bytes(query);
      step->engines[askers_[i]] =
          workspace * 2 <= (*rooms)[i]
              ? Engines({{.name = "assumed", .workspace = workspace}})
              : Engines(workspace_engines(*graph_, node, query, source_).engines);
    }
    return *std::move(step);
  }

  /// What is left for each kernel's workspace; nullopt where a size overflows.
  [[nodiscard]] std::optional<std::vector<Bytes>> rooms(std::int64_t batch) {
    const auto live = live_without_workspaces(batch);
    if (!live) return std::nullopt;
    std::vector<Bytes> rooms;
    for (const std::size_t node : askers_) rooms.push_back(limit_ - (*live)[node]);
    return rooms;
  }

  /// What PyTorch's allocator is taken to need at most beside what is live.
  [[nodiscard]] Bytes fragmentation() const {
    return std::max(least_fragmentation, Bytes(limit_.count() / 10 * 4));
  }

  [[nodiscard]] bool engines_fit(std::int64_t batch, const std::vector<Bytes>& rooms) {
    for (std::size_t i = 0; i < askers_.size(); ++i) {
      const auto query = workspace_query(*graph_, graph_->nodes[askers_[i]], batch);
      if (round_up(least_workspace(askers_[i], query), granularity_) > rooms[i]) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool within_limit(const std::vector<Bytes>& live) const {
    if (live.empty()) return true;
    const Bytes top = *std::max_element(live.begin(), live.end());
    return top <= limit_;
  }

  [[nodiscard]] static Bytes operand_bytes(const WorkspaceQuery& query) {
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

  [[nodiscard]] Bytes least_workspace(std::size_t node, const WorkspaceQuery& query) {
    const auto found = asked_.find(query);
    if (found != asked_.end()) return found->second;
    const WorkspaceAnswer answer = workspace_engines(*graph_, graph_->nodes[node], query, source_);
    const Bytes least =
        std::min_element(answer.engines.begin(), answer.engines.end(),
                         [](const Engine& a, const Engine& b) { return a.workspace < b.workspace; })
            ->workspace;
    if (asked_.size() >= most_remembered) asked_.clear();
    asked_.emplace(query, least);
    return least;
  }

  std::shared_ptr<const StepGraph> graph_;
  CheckSettings settings_;
  WorkspaceSource& source_;
  Bytes granularity_;
  Bytes limit_;
  std::vector<RuntimeBuffer> buffers_;
  std::vector<Touches> touches_;
  std::vector<std::size_t> askers_;  // the nodes that want a workspace
  std::map<WorkspaceQuery, Bytes> asked_;
};

/// The largest batch whose tensors alone fit; 0: none.
std::int64_t tensor_ceiling(Trial& trial) {
  if (!trial.tensors_fit(1)) return 0;
  std::int64_t fits = 1;
  std::int64_t too_large = 2;
  while (too_large <= largest_searched_batch && trial.tensors_fit(too_large)) {
    fits = too_large;
    too_large *= 2;
  }
  if (too_large > largest_searched_batch) return largest_searched_batch;
  while (too_large - fits > 1) {
    const std::int64_t middle = fits + (too_large - fits) / 2;
    (trial.tensors_fit(middle) ? fits : too_large) = middle;
  }
  return fits;
}

std::int64_t walk_down(Trial& trial, std::int64_t from) {
  std::int64_t batch = from;
  while (batch > 0 && !trial.completes(batch, false)) --batch;
  return batch;
}

std::int64_t safe_below(Trial& trial, std::int64_t largest) {
  // Live bytes and operands grow with the batch: what completes unasked, all smaller ones do too.
  std::int64_t unasked = 0;
  std::int64_t end = largest + 1;
  while (end - unasked > 1) {
    const std::int64_t middle = unasked + (end - unasked) / 2;
    (trial.completes_unasked(middle) ? unasked : end) = middle;
  }
  // For the same reason what fits beside the largest batch's tensors fits beside a smaller one's,
  // which need not be sized then.
  const auto rooms = trial.rooms(largest);
  for (std::int64_t batch = unasked + 1; batch < largest; ++batch) {
    if (rooms && trial.engines_fit(batch, *rooms)) continue;
    if (!trial.completes(batch, true)) return batch - 1;
  }
  return largest;
}

/// The batches at which the step completes, by running it.
class Runs {
 public:
  Runs(std::shared_ptr<const StepGraph> graph, const Card& card, const CheckSettings& settings,
       WorkspaceSource& source, Trial& trial)
      : graph_(std::move(graph)),
        card_(card),
        settings_(settings),
        source_(source),
        trial_(trial) {}

  [[nodiscard]] Result<bool> at(std::int64_t batch) {
    if (!trial_.completes(batch, false)) return false;
    return size_step(graph_, batch, source_).map([&](const SizedStep& step) {
      return completes(step, card_, settings_);
    });
  }

  /// Whether it would with what is assumed, which asks about few convolutions.
  [[nodiscard]] bool assumed_at(std::int64_t batch) const {
    if (graph_->settings.convolutions.benchmark) return false;  // which looks at all engines
    const std::optional<SizedStep> step = trial_.assumed_step(batch);
    return step && completes(*step, card_, settings_);
  }

  /// The largest up to `ceiling`; 0: none.
  [[nodiscard]] Result<std::int64_t> largest(std::int64_t ceiling) {
    std::int64_t fails = ceiling + 1;
    for (std::int64_t tried = 0; tried < most_tried_batches; ++tried) {
      const std::int64_t batch = walk_down(trial_, fails - 1);
      if (batch == 0) return 0;
      const Result<bool> runs = at(batch);
      if (!runs || *runs) return runs.map([&](bool) { return batch; });
      fails = batch;
    }
    all_tried = false;
    std::int64_t completes = 0;
    while (fails - completes > 1) {
      const std::int64_t middle = completes + (fails - completes) / 2;
      const Result<bool> runs = at(middle);
      if (!runs) return tl::unexpected(runs.error());
      (*runs ? completes : fails) = middle;
    }
    return completes;
  }

  /// The largest up to `largest`, which completes, below which none is found that does not.
  [[nodiscard]] Result<std::int64_t> safe(std::int64_t largest) {
    std::int64_t roomy = 0;
    std::int64_t end = largest;
    while (end - roomy > 1) {
      const std::int64_t middle = roomy + (end - roomy) / 2;
      (trial_.completes_unasked(middle, trial_.fragmentation()) ? roomy : end) = middle;
    }
    const std::int64_t stride = (largest - roomy) / most_tried_batches + 1;
    if (stride > 1) all_tried = false;
    std::int64_t safe = roomy;
    for (std::int64_t batch = roomy + 1; batch < largest; batch += stride) {
      const Result<bool> runs = assumed_at(batch) ? Result<bool>(true) : at(batch);
      if (!runs) return tl::unexpected(runs.error());
      if (!*runs) return safe;
      safe = batch;
    }
    return largest;
  }

  bool all_tried = true;

 private:
  std::shared_ptr<const StepGraph> graph_;
  const Card& card_;
  const CheckSettings& settings_;
  WorkspaceSource& source_;
  Trial& trial_;
};

/// The largest micro-batch that divides the global one and completes; nullopt: not even one sample.
Result<std::optional<Accumulation>> accumulate(std::int64_t global_batch, std::int64_t largest_safe,
                                               const BatchSettings& settings, const Card& card,
                                               WorkspaceSource& source) {
  assert(settings.accumulating != nullptr);
  for (std::int64_t micro = std::min(global_batch, largest_safe); micro > 0; --micro) {
    if (global_batch % micro != 0) continue;
    const Accumulation found{global_batch, micro, global_batch / micro};
    if (found.steps == 1) return found;
    const Result<SizedStep> sized = size_step(settings.accumulating, micro, source);
    if (!sized) return tl::unexpected(sized.error());
    if (completes(*sized, card, settings.check)) return found;
  }
  return std::optional<Accumulation>();
}

}  // namespace

Result<BatchReport> find_batch(std::shared_ptr<const StepGraph> graph, const Card& card,
                               const BatchSettings& settings, WorkspaceSource& source) {
  BatchReport report;
  Trial trial(graph, card, settings.check, source);
  const auto checked = [&](std::int64_t batch) -> Result<CheckReport> {
    Result<SizedStep> sized = size_step(graph, batch, source);
    if (!sized) return tl::unexpected(sized.error());
    return check(*sized, card, settings.check);
  };
  report.ceiling = tensor_ceiling(trial);
  report.unlimited = report.ceiling == largest_searched_batch;
  report.largest = report.largest_safe = report.ceiling;
  if (!report.unlimited) {
    Runs runs(graph, card, settings.check, source, trial);
    const Result<std::int64_t> largest = runs.largest(report.ceiling);
    if (!largest) return tl::unexpected(largest.error());
    report.largest = *largest;
    const bool allocates =
        settings.check.runtime == Runtime::pytorch || settings.check.runtime == Runtime::tensorflow;
    const bool replays = allocates && report.largest > 0;
    const Result<std::int64_t> safe =
        replays ? runs.safe(report.largest) : safe_below(trial, report.largest);
    if (!safe) return tl::unexpected(safe.error());
    report.largest_safe = *safe;
    report.all_tried = runs.all_tried;
  }
  report.recommended = report.largest_safe / settings.multiple * settings.multiple;
  if (report.recommended == 0) report.recommended = report.largest_safe;
  // Steps that give memory back to the driver and ask for it again, each of them, are slow.
  std::int64_t calm = report.recommended;
  for (int tried = 0; tried < most_calm_tries && calm > settings.multiple; ++tried) {
    Result<CheckReport> at = checked(calm);
    if (!at) return tl::unexpected(at.error());
    if (at->settles) {
      report.recommended = calm;
      report.at_recommended = *std::move(at);
      break;
    }
    calm -= settings.multiple;
  }
  if (settings.global_batch && report.largest_safe > 0) {
    auto accumulation =
        accumulate(*settings.global_batch, report.largest_safe, settings, card, source);
    if (!accumulation) return tl::unexpected(accumulation.error());
    report.accumulation = *accumulation;
  }
  for (std::int64_t batch = 1; batch < report.largest; batch *= 2) {
    const Result<CheckReport> point = checked(batch);
    if (!point) return tl::unexpected(point.error());
    report.curve.push_back({batch, point->device_bytes});
  }
  if (report.largest > 0) {
    const Result<CheckReport> last = checked(report.largest);
    if (!last) return tl::unexpected(last.error());
    report.curve.push_back({report.largest, last->device_bytes});
    if (!report.at_recommended) {
      Result<CheckReport> recommended = checked(report.recommended);
      if (!recommended) return tl::unexpected(recommended.error());
      report.at_recommended = *std::move(recommended);
    }
  } else {
    const Result<CheckReport> one = checked(1);
    if (!one) return tl::unexpected(one.error());
    report.at_one = *one;
  }
  return report;
}

}  // namespace stowage
