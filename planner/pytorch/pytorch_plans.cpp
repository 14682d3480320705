#include "planner/pytorch/pytorch_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "estimator/document/step_hash.hpp"
#include "estimator/optimizer/optimizer_word.hpp"
#include "estimator/rewrite/parameter_updates.hpp"
#include "estimator/runtime/runtime_process.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "planner/problem/rates.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/pytorch/excess_bytes.hpp"
#include "planner/pytorch/hooked_run.hpp"
#include "planner/pytorch/hooked_step.hpp"
#include "planner/pytorch/host_parameters.hpp"
#include "planner/pytorch/module_regions.hpp"
#include "planner/pytorch/offload_search.hpp"
#include "planner/pytorch/plan_facts.hpp"
#include "planner/pytorch/region_choice.hpp"
#include "planner/pytorch/saved_moments.hpp"
#include "planner/pytorch/streamable_blocks.hpp"
#include "planner/pytorch/tried_means.hpp"

namespace stowage {

namespace {

// Shares of the modules that are checkpointed, of those that save most for their time.
constexpr double shares_of_modules[] = {0, 0.25, 0.5, 0.75, 1};
constexpr std::int64_t most_micro_batches = 64;
// A proposal that moves more than so many times its bound is looked for with expandable segments.
constexpr double most_of_bound = 1.25;

class PytorchSearch {
 public:
  PytorchSearch(const PytorchRequest& request, WorkspaceSource& workspaces,
                const ProposalOptions& options)
      : asked_(request),
        request_(request),
        workspaces_(workspaces),
        options_(options),
        rates_(make_rates(request.plan.card, request.plan.host, request.plan.measured.get())) {}

  Result<std::vector<PytorchProposal>> run() {
    if (auto mistake = unplanned()) return failure(*std::move(mistake));
    auto whole = hooked_case(request_, workspaces_, {});
    if (!whole) return tl::unexpected(whole.error());
    whole_ = std::move(whole->step);
    CheckReport report = check(whole_, request_.plan.card, request_.process);
    available_ = report.available_bytes;
    if (report.fits) {
      add(std::string(unchanged_step), {.step = whole_}, {}, std::nullopt, std::move(report));
      return std::move(proposals_);
    }
    least_missing_ = least_missing_unchanged_ = Bytes() - report.headroom;
    streamable_ = streamable_blocks(request_.plan.document, *whole_.graph).size();
    tried_ = {.trains = trains(), .streams = streamable_ > 0};
    if (trains()) {
      search_training();
      search_expandable();
    } else {
      search_inference();
    }
    if (options_.missing && std::ranges::all_of(proposals_, &PytorchProposal::changes_training)) {
      options_.missing(least_missing_unchanged_);
    }
    if (proposals_.empty()) return failure(nothing_fits());
    std::ranges::stable_sort(proposals_, {}, [](const PytorchProposal& proposal) {
      return std::tuple(proposal.changes_training, proposal.plan.totals.step_seconds);
    });
    return std::move(proposals_);
  }

 private:
  [[nodiscard]] bool trains() const {
    return request_.plan.document.graph->settings.mode == Mode::train;
  }

  void search_training() {
    if (auto updates = parameter_updates(*whole_.graph)) updates_ = *std::move(updates);
    choose_modules();
    std::ranges::stable_sort(regions_, std::greater<>(), [](const ModuleRegion& region) {
      return static_cast<double>(region.saved.count()) / std::max(region.seconds, 1e-9);
    });
    tried_.has_modules = !regions_.empty();
    search_shares();
    search_parts();
    search_early_updates();
    search_host_updates();
    search_streams({}, "");
    if (!regions_.empty()) search_streams({.modules = regions_}, "checkpoint-all-");
  }

  /// Those of the tree of modules; where they cannot be rewritten, the repeated blocks.
  void choose_modules() {
    RegionChoice choice = choose_regions(whole_, rates_, request_.plan.document.modules);
    regions_ = std::move(choice.regions);
    nested_ = std::move(choice.nested);
    if (hooked_case(request_, workspaces_, {.modules = regions_})) return;
    regions_ = module_regions(whole_, rates_);
    nested_.clear();
  }

  /// The fewest blocks that are streamed; the fewest parts of the batch; where no streaming does,
  /// the fewest parts with which it does.
  void search_inference() {
    bool streams = search_streams({}, "");
    if (request_.plan.document.fixed_batch) return;
    const std::int64_t batch = request_.plan.batch.samples;
    for (std::int64_t parts = 2; parts <= std::min(batch, most_micro_batches); ++parts) {
      if (batch % parts != 0 || is_cancelled()) continue;
      const auto of = hooked_case(request_, workspaces_, {.parts = parts});
      if (!of) return;
      if (try_as_it_is(fmt::format("chunk-{}", parts), *of)) return;
      if (!streams) streams = search_streams({.parts = parts}, fmt::format("chunk-{}-", parts));
    }
  }

  [[nodiscard]] std::optional<Diagnostic> unplanned() const {
    const StepGraph& step = *request_.plan.document.graph;
    if (step.settings.kernels != KernelSet::pytorch) {
      return Diagnostic{.message = "a plan for PyTorch is of a step of PyTorch's kernels"};
    }
    if (step.settings.micro_batches > 1) {
      return Diagnostic{.message =
                            "a plan for PyTorch is of one micro-batch: its decisions hold "
                            "for each"};
    }
    return std::nullopt;
  }

  [[nodiscard]] Diagnostic nothing_fits() const {
    std::string hint = "tried were " + in_words(tried_);
    if (has_quantised_weights(*request_.plan.document.graph)) {
      hint += "; quantised weights are not streamed: they stay on the GPU";
    }
    return {.message = fmt::format("{} has no room for the {}: {} are missing at best",
                                   request_.plan.card.name, trains() ? "step" : "inference",
                                   format_bytes(least_missing_)),
            .hint = std::move(hint)};
  }

  /// With expandable segments, where fragments of the usual ones make a proposal move clearly more
  /// than its bound, or where nothing fits in one micro-batch. Kept are the proposals that gain by
  /// it.
  void search_expandable() {
    const std::vector<PytorchProposal> usual = proposals_;
    const auto is_whole = [](const PytorchProposal& one) { return one.plan.micro_batches == 1; };
    const bool can_expand = !request_.process.allocator.expandable_segments &&
                            request_.process.stack.pytorch >= first_expandable_segments;
    const bool may_gain =
        std::ranges::none_of(usual, is_whole) || std::ranges::any_of(usual, moves_too_much);
    if (is_cancelled() || !can_expand || !may_gain) return;
    request_.process.allocator.expandable_segments = tried_.expandable = true;
    if (try_as_it_is(std::string(unchanged_step), {.step = whole_})) return;
    search_shares();
    if (usual.empty()) search_parts();
    search_early_updates();
    search_host_updates();
    std::erase_if(proposals_, [&](const PytorchProposal& proposal) {
      return proposal.plan.expandable_segments &&
             std::ranges::any_of(usual, [&](const PytorchProposal& other) {
               return is_whole(other) && is_no_worse(other, proposal);
             });
    });
  }

  static Bytes moved(const PytorchProposal& proposal) {
    return proposal.plan.totals.to_host + proposal.plan.totals.from_host;
  }

  static bool moves_too_much(const PytorchProposal& proposal) {
    const auto bound = static_cast<double>(proposal.plan.totals.pcie_lower_bound.count());
    return static_cast<double>(moved(proposal).count()) > most_of_bound * bound;
  }

  static bool is_no_worse(const PytorchProposal& one, const PytorchProposal& other) {
    return one.plan.totals.step_seconds <= other.plan.totals.step_seconds &&
           moved(one) <= moved(other);
  }

  [[nodiscard]] bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  [[nodiscard]] std::vector<ModuleRegion> first_regions(std::size_t count) const {
    return {regions_.begin(), regions_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  /// The whole batch at once.
  void search_shares() {
    std::set<std::size_t> tried;
    bool all_fit = false;
    for (const double share : shares_of_modules) {
      const auto count =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(regions_.size())));
      if (is_cancelled()) return;
      if (tried.insert(count).second) all_fit = try_modules(count);
    }
    if (nested_.empty() || all_fit || is_cancelled()) return;
    const auto of = hooked_case(request_, workspaces_, {.modules = nested_});
    if (of && !try_as_it_is("checkpoint-nested", *of)) try_offload("checkpoint-nested", *of);
  }

  /// Whether it fits without saved tensors on the host.
  bool try_modules(std::size_t count) {
    const auto of = hooked_case(request_, workspaces_, {.modules = first_regions(count)});
    const std::string name = share_name(count);
    if (!of) return false;
    if (count > 0 && try_as_it_is(name, *of)) return true;
    try_offload(name, *of);
    return false;
  }

  [[nodiscard]] std::string share_name(std::size_t count) const {
    if (count == 0) return "offload";
    if (count == regions_.size()) return "checkpoint-all";
    return fmt::format("checkpoint-{}-of-{}", count, regions_.size());
  }

  /// Each update as its gradient comes: as it is, and, where that is not enough, with each share of
  /// the modules whose peak is lower then.
  void search_early_updates() {
    if (!can_update_early() || is_cancelled()) return;
    tried_.early_updates = true;
    std::set<std::size_t> tried;
    for (const double share : shares_of_modules) {
      const auto count =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(regions_.size())));
      if (is_cancelled()) return;
      if (tried.insert(count).second && try_early_updates(count) && count == 0) return;
    }
  }

  /// Whether it fits without saved tensors on the host.
  bool try_early_updates(std::size_t count) {
    const HookedChanges late{.modules = first_regions(count)};
    HookedChanges changes = late;
    changes.updates.early = true;
    const auto of = hooked_case(request_, workspaces_, changes);
    if (!of) return false;
    const std::string name = "early-update-" + share_name(count);
    if (try_as_it_is(count == 0 ? "early-update" : name, *of)) return true;
    const auto without = hooked_case(request_, workspaces_, late);
    if (!without || !lowers_peak(*of, *without)) return false;
    try_offload(name, *of);
    return false;
  }

  [[nodiscard]] bool lowers_peak(const HookedCase& of, const HookedCase& without) {
    const auto report = check_hooked(request_, workspaces_, of, {});
    const auto before = check_hooked(request_, workspaces_, without, {});
    return report && before && report->headroom > before->headroom;
  }

  [[nodiscard]] bool can_update_early() const {
    return updates_ && !updates_->late && !updates_->undivided;
  }

  /// Whether it fits with the fewest bytes on the host.
  bool try_offload(const std::string& name, const HookedCase& of, Bytes excess = Bytes()) {
    OffloadSearch search = search_offload(request_, workspaces_, options_, of, name);
    if (search.found) {
      add(name, of, search.found->decisions, search.bounds, std::move(search.found->report),
          excess);
      return true;
    }
    if (search.least_missing > Bytes()) note_missing(search.least_missing, of);
    return false;
  }

  /// The optimizer on the CPU: of as few parameters as do, else with saved tensors on the host,
  /// then with all modules run again.
  void search_host_updates() {
    if (!updates_ || is_cancelled()) return;
    tried_.host_updates = true;
    if (try_host_updates(false)) return;
    if (!regions_.empty()) try_host_updates(true);
  }

  /// `again`: with all modules run again. Whether it fits without saved tensors on the host.
  bool try_host_updates(bool again) {
    HookedChanges changes{.modules = first_regions(again ? regions_.size() : 0)};
    changes.updates = {.on_host = UpdateChoice::OnHost::all, .early = can_update_early()};
    const auto of = hooked_case(request_, workspaces_, changes);
    if (!of) return false;
    const std::string ending = again ? "-checkpoint" : "";
    if (!fits_as_it_is(*of)) {
      try_offload("cpu-optimizer" + (again ? ending : "-offload"), *of);
      return false;
    }
    try_some_host_updates(changes, ending);
    return try_as_it_is("cpu-optimizer" + ending, *of);
  }

  /// As few parameters' updates on the CPU as do. Precondition: it fits with all of them there.
  void try_some_host_updates(HookedChanges changes, const std::string& ending) {
    if (updates_->undivided) return;
    changes.updates = {.early = can_update_early()};
    const auto plain = hooked_case(request_, workspaces_, changes);
    if (!plain || fits_as_it_is(*plain)) return;
    const Bytes bound =
        host_updates_bound(whole_, *updates_, excess_bytes(plain->step, request_.plan.available));
    const std::vector<ParameterId> parameters = host_parameters(whole_, *updates_);
    const auto moving = [&](std::size_t count) {
      const auto end = parameters.begin() + static_cast<std::ptrdiff_t>(count);
      changes.updates.on_host = UpdateChoice::OnHost::some;
      changes.updates.parameters.assign(parameters.begin(), end);
      return hooked_case(request_, workspaces_, changes);
    };
    std::size_t too_few = 0, enough = parameters.size() + 1;
    while (enough - too_few > 1) {
      const std::size_t count = (too_few + enough) / 2;
      const auto of = moving(count);
      (of && fits_as_it_is(*of) ? enough : too_few) = count;
    }
    if (enough > parameters.size()) return;
    const auto of = moving(enough);
    if (!of) return;
    try_as_it_is(
        fmt::format("cpu-optimizer-{}-of-{}{}", enough, updates_->gradients.size(), ending), *of,
        bound);
  }

  /// The fewest blocks whose parameters are streamed, with these changes besides; where all are too
  /// few, saved tensors lie on the host, too. Returns whether something fits.
  bool search_streams(const HookedChanges& besides, const std::string& prefix) {
    if (streamable_ == 0 || is_cancelled()) return false;
    const auto streaming = [&](std::size_t count) {
      HookedChanges changes = besides;
      changes.streamed = count;
      return hooked_case(request_, workspaces_, changes);
    };
    const auto plain = streaming(0);
    if (!plain || fits_as_it_is(*plain)) return false;
    const Bytes excess = excess_bytes(plain->step, request_.plan.available);
    const auto name = [&](std::size_t count) {
      return fmt::format("{}stream-{}-of-{}", prefix, count, streamable_);
    };
    const auto all = streaming(streamable_);
    if (!all) return false;
    if (!fits_as_it_is(*all)) {
      return trains() && try_offload(name(streamable_) + "-offload", *all, excess);
    }
    std::size_t too_few = 0, enough = streamable_;
    while (enough - too_few > 1) {
      const std::size_t count = (too_few + enough) / 2;
      const auto of = streaming(count);
      (of && fits_as_it_is(*of) ? enough : too_few) = count;
    }
    const auto of = streaming(enough);
    return of && try_as_it_is(name(enough), *of, excess);
  }

  [[nodiscard]] bool fits_as_it_is(const HookedCase& of) {
    const auto report = check_hooked(request_, workspaces_, of, {});
    if (!report) return false;
    if (!report->fits) note_missing(Bytes() - report->headroom, of);
    return fits_safely(*report);
  }

  /// The fewest micro-batches with which the step fits, as it is and with all modules run again.
  void search_parts() {
    if (!request_.plan.document.graph->micro_batch.first_node.valid()) return;
    if (request_.plan.document.fixed_batch) return;
    const std::int64_t batch = request_.plan.batch.samples;
    tried_.parts = batch > 1;
    bool has_checkpointed = regions_.empty();
    for (std::int64_t parts = 2; parts <= std::min(batch, most_micro_batches); ++parts) {
      if (batch % parts != 0 || is_cancelled()) continue;
      if (try_parts({}, parts, "")) return;
      if (!has_checkpointed) has_checkpointed = try_parts(regions_, parts, "-checkpoint");
    }
  }

  bool try_parts(const std::vector<ModuleRegion>& modules, std::int64_t parts,
                 std::string_view ending) {
    const auto of =
        hooked_case(request_, workspaces_, {.modules = modules, .micro_batches = parts});
    return of && try_as_it_is(fmt::format("micro-batch-{}{}", parts, ending), *of);
  }

  void note_missing(Bytes missing, const HookedCase& of) {
    least_missing_ = std::min(least_missing_, missing);
    if (!changes_training(of)) {
      least_missing_unchanged_ = std::min(least_missing_unchanged_, missing);
    }
  }

  static bool changes_training(const HookedCase& of) {
    return of.micro_batches > 1 && changes_training_in_parts(*of.step.graph);
  }

  bool try_as_it_is(const std::string& name, const HookedCase& of, Bytes excess = Bytes()) {
    auto report = check_hooked(request_, workspaces_, of, {});
    if (!report) return false;
    if (fits_safely(*report)) {
      add(name, of, {}, std::nullopt, *std::move(report), excess);
      return true;
    }
    // Else it lacks the margin alone.
    if (!report->fits) note_missing(Bytes() - report->headroom, of);
    return false;
  }

  /// `excess`: of a step with streamed parameters, excess_bytes of the step without; with some
  /// updates on the CPU, host_updates_bound.
  void add(std::string name, const HookedCase& of, const std::vector<OffloadDecision>& decisions,
           const std::optional<PlanTotals>& bounds, CheckReport report, Bytes excess = Bytes()) {
    if (request_.process.allocator.expandable_segments &&
        !asked_.process.allocator.expandable_segments) {
      name += "-expandable";
    }
    if (options_.has_plan && proposals_.empty()) options_.has_plan();
    PytorchPlan plan = described(of, report);
    PytorchTotals& totals = plan.totals;
    for (const OffloadDecision& decision : decisions) {
      plan.offload.push_back(decision.storage);
      totals.to_host += of.step.bytes(decision.stay.storage) * of.micro_batches;
    }
    totals.from_host = totals.to_host;
    const auto [gradients, parameters] = inserted_copies(of.step);
    totals.to_host += gradients;
    totals.from_host += parameters;
    HookedStep hooked = set_seconds(of, decisions, totals);
    if (!of.stream.empty()) {
      totals.pcie_lower_bound = excess;
      totals.step_lower_bound_seconds = std::max(hooked.busy_seconds, h2d_seconds(rates_, excess));
    } else if (of.updates.on_host == UpdateChoice::OnHost::some) {
      totals.pcie_lower_bound = excess;
    } else {
      totals.pcie_lower_bound = gradients + parameters;
      if (bounds) {
        totals.pcie_lower_bound += bounds->pcie_lower_bound;
        totals.step_lower_bound_seconds = bounds->step_lower_bound_seconds;
      }
    }
    PytorchProposal proposal{std::move(name), std::move(plan), std::move(report)};
    proposal.lanes = {.graph = of.step.graph,
                      .storage_bytes = of.step.storage_bytes,
                      .lanes = std::move(hooked.lanes),
                      .seconds = hooked.seconds};
    if (changes_training(of)) {
      proposal.changes_training = true;
      proposal.remarks.push_back(fmt::format(
          "changes the training, so it is not recommended: batch_norm takes its statistics from "
          "micro-batches of {} instead of {}",
          of.step.batch, request_.plan.batch.samples));
    }
    if (of.updates.early) {
      proposal.remarks.emplace_back(
          "updates begin before optimizer.step(): the script may not read or add up gradients, nor "
          "leave a step out");
    }
    if (of.parts > 1) {
      proposal.remarks.push_back(fmt::format(
          "each part is computed as a batch of {}, whose last bits may differ from the whole's",
          of.step.batch));
    }
    proposals_.push_back(std::move(proposal));
  }

  /// The copies of streamed parameters and of an update on the host: what goes there, and what
  /// comes from there.
  [[nodiscard]] static std::pair<Bytes, Bytes> inserted_copies(const SizedStep& step) {
    std::pair<Bytes, Bytes> copies;
    for (const KernelNode& node : step.graph->nodes) {
      if (node.kernel != Kernel::foreign) continue;
      if (kernel_name(node) == offload_kernel) {
        copies.first += step.bytes(node.reads.front().storage);
      } else if (kernel_name(node) == fetch_kernel) {
        copies.second += step.bytes(node.writes.front().storage);
      }
    }
    return copies;
  }

  HookedStep set_seconds(const HookedCase& of, const std::vector<OffloadDecision>& decisions,
                         PytorchTotals& totals) const {
    const auto calls = decisions.empty() ? 0 : of.step.graph->saved.size();
    HookedStep hooked =
        hooked_step(of.step, rates_, decisions, calls,
                    updates_ ? update_times(whole_, *updates_, rates_, of.updates) : UpdateTimes{});
    const HookedStep plain = hooked_step(whole_, rates_, {}, 0);
    const double update =
        update_seconds(of.step, [&](NodeId node) { return gpu_seconds(rates_, of.step, node); });
    const auto parts = static_cast<double>(of.micro_batches);
    totals.pinned = hooked.pinned;
    totals.step_seconds = parts * (hooked.seconds - update) + update;
    totals.all_gpu_step_seconds = plain.seconds;
    for (std::size_t n = 0; n < of.step.graph->nodes.size(); ++n) {
      if (!is_second_run(of.step.graph->nodes[n])) continue;
      totals.recomputed_seconds += parts * gpu_seconds(rates_, of.step, NodeId::of(n));
    }
    return hooked;
  }

  template <typename SecondsOf>
  [[nodiscard]] static double update_seconds(const SizedStep& step, const SecondsOf& seconds_of) {
    double seconds = 0;
    for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
      if (step.graph->nodes[n].phase == Phase::update) seconds += seconds_of(NodeId::of(n));
    }
    return seconds;
  }

  [[nodiscard]] PytorchPlan described(const HookedCase& of, const CheckReport& report) const {
    const StepDocument& document = request_.plan.document;
    PytorchPlan plan{.stowage_version = request_.plan.stowage_version,
                     .model = document.graph->model,
                     .trains = trains(),
                     .names_are_recorded = names_are_recorded(document),
                     .batch = of.step.batch * of.parts,
                     .micro_batches = of.micro_batches,
                     .precision = std::string(to_string(document.precision)),
                     .optimizer = optimizer_word(document.graph->settings.optimizer),
                     .step_hash = step_hash(whole_),
                     .card = request_.plan.card.name,
                     .available = available_,
                     .pytorch = to_string(request_.process.stack.pytorch),
                     .saved = std::ssize(document.graph->saved),
                     .checkpoint = of.modules,
                     .stream = of.stream,
                     .optimizer_on_cpu = of.updates.on_host != UpdateChoice::OnHost::none,
                     .cpu_parameters = names_of(of.updates.parameters),
                     .early_updates = of.updates.early,
                     .expandable_segments = request_.process.allocator.expandable_segments};
    if (of.parts > 1) plan.chunks = chunks_of(*document.graph, of.parts);
    plan.totals.peak_allocated = report.run.process().steady.allocated;
    plan.totals.peak_reserved = report.reserved_bytes();
    plan.totals.device_bytes = report.device_bytes;
    return plan;
  }

  [[nodiscard]] std::vector<std::string> names_of(const std::vector<ParameterId>& ids) const {
    std::vector<std::string> names;
    names.reserve(ids.size());
    for (const ParameterId id : ids) {
      names.push_back(request_.plan.document.parameters[id.index()].name);
    }
    return names;
  }

  const PytorchRequest& asked_;
  PytorchRequest request_;  // as asked, then with expandable segments
  WorkspaceSource& workspaces_;
  const ProposalOptions& options_;
  Rates rates_;
  SizedStep whole_;
  std::size_t streamable_ = 0;               // blocks
  std::optional<ParameterUpdates> updates_;  // of a step that trains; none: they stay as they are
  std::vector<ModuleRegion> regions_;        // those that save most for their time first
  std::vector<ModuleRegion> nested_;  // others, some of them in others; none: nesting does not pay
  Bytes available_;                   // of the card; proposals leave a margin of it
  Bytes least_missing_,
      least_missing_unchanged_;  // the second: of what leaves the training as it is
  TriedMeans tried_;
  std::vector<PytorchProposal> proposals_;
};

}  // namespace

Result<std::vector<PytorchProposal>> make_pytorch_plans(const PytorchRequest& request,
                                                        WorkspaceSource& workspaces,
                                                        const ProposalOptions& options) {
  return PytorchSearch(request, workspaces, options).run();
}

}  // namespace stowage
