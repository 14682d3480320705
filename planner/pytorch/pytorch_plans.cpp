#include "planner/pytorch/pytorch_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "estimator/rewrite/parameter_updates.hpp"
#include "estimator/runtime/runtime_process.hpp"
#include "planner/pytorch/case_trials.hpp"
#include "planner/pytorch/excess_bytes.hpp"
#include "planner/pytorch/module_regions.hpp"
#include "planner/pytorch/region_choice.hpp"
#include "planner/pytorch/region_shares.hpp"
#include "planner/pytorch/streamable_blocks.hpp"
#include "planner/pytorch/tried_means.hpp"
#include "planner/pytorch/update_search.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_micro_batches = 64;
// A proposal that moves more than so many times its bound is looked for with expandable segments.
constexpr double most_of_bound = 1.25;

std::optional<Diagnostic> unplanned(const StepGraph& step) {
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

bool trains(const PytorchRequest& request) {
  return request.plan.document.graph->settings.mode == Mode::train;
}

/// Of a step that does not fit as it is.
class PytorchSearch {
 public:
  explicit PytorchSearch(CaseTrials& trials)
      : trials_(trials),
        streamable_(
            streamable_blocks(trials.request().plan.document, *trials.whole().step.graph).size()),
        tried_{.trains = trains(trials.request()), .streams = streamable_ > 0} {}

  void run() {
    if (!tried_.trains) {
      search_inference();
      return;
    }
    search_training();
    search_expandable();
  }

  [[nodiscard]] Diagnostic nothing_fits() const {
    const PlanRequest& asked = trials_.request().plan;
    std::string hint = "tried were " + in_words(tried_);
    if (has_quantised_weights(*asked.document.graph)) {
      hint += "; quantised weights are not streamed: they stay on the GPU";
    }
    return {.message = fmt::format("{} has no room for the {}: {} are missing at best",
                                   asked.card.name, tried_.trains ? "step" : "inference",
                                   format_bytes(trials_.missing().of_all)),
            .hint = std::move(hint)};
  }

 private:
  void search_training() {
    choose_modules();
    std::ranges::stable_sort(regions_, std::greater<>(), [](const ModuleRegion& region) {
      return static_cast<double>(region.saved.count()) / std::max(region.seconds, 1e-9);
    });
    tried_.has_modules = !regions_.empty();
    search_shares();
    search_parts();
    search_updates();
    search_streams({}, "");
    if (!regions_.empty()) search_streams({.modules = regions_}, "checkpoint-all-");
  }

  void search_updates() {
    tried_.early_updates |= search_early_updates(trials_, regions_);
    tried_.host_updates |= search_host_updates(trials_, regions_);
  }

  /// Those of the tree of modules; where they cannot be rewritten, the repeated blocks.
  void choose_modules() {
    const SizedStep& whole = trials_.whole().step;
    RegionChoice choice =
        choose_regions(whole, trials_.rates(), trials_.request().plan.document.modules);
    regions_ = std::move(choice.regions);
    nested_ = std::move(choice.nested);
    if (trials_.changed({.modules = regions_})) return;
    regions_ = module_regions(whole, trials_.rates());
    nested_.clear();
  }

  /// The fewest blocks that are streamed; the fewest parts of the batch; where no streaming does,
  /// the fewest parts with which it does.
  void search_inference() {
    bool streams = search_streams({}, "");
    if (trials_.request().plan.document.fixed_batch) return;
    const std::int64_t batch = trials_.request().plan.batch.samples;
    for (std::int64_t parts = 2; parts <= std::min(batch, most_micro_batches); ++parts) {
      if (batch % parts != 0 || trials_.is_cancelled()) continue;
      const auto of = trials_.changed({.parts = parts});
      if (!of) return;
      if (trials_.try_as_it_is(fmt::format("chunk-{}", parts), *of)) return;
      if (!streams) streams = search_streams({.parts = parts}, fmt::format("chunk-{}-", parts));
    }
  }

  /// With expandable segments, where fragments of the usual ones make a proposal move clearly more
  /// than its bound, or where nothing fits in one micro-batch. Kept are the proposals that gain by
  /// it.
  void search_expandable() {
    const std::vector<PytorchProposal> usual = trials_.proposals();
    const auto is_whole = [](const PytorchProposal& one) { return one.plan.micro_batches == 1; };
    const bool can_expand = !trials_.request().process.allocator.expandable_segments &&
                            trials_.request().process.stack.pytorch >= first_expandable_segments;
    const bool may_gain =
        std::ranges::none_of(usual, is_whole) || std::ranges::any_of(usual, moves_too_much);
    if (trials_.is_cancelled() || !can_expand || !may_gain) return;
    trials_.expand_segments();
    tried_.expandable = true;
    if (trials_.try_as_it_is(std::string(unchanged_step), {.step = trials_.whole().step})) return;
    search_shares();
    if (usual.empty()) search_parts();
    search_updates();
    std::erase_if(trials_.proposals(), [&](const PytorchProposal& proposal) {
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

  /// The whole batch at once.
  void search_shares() {
    bool all_fit = false;
    for (const std::size_t count : shares_of(regions_)) {
      if (trials_.is_cancelled()) return;
      all_fit = try_modules(count);
    }
    if (nested_.empty() || all_fit || trials_.is_cancelled()) return;
    const auto of = trials_.changed({.modules = nested_});
    if (of && !trials_.try_as_it_is("checkpoint-nested", *of)) {
      trials_.try_offload("checkpoint-nested", *of);
    }
  }

  /// Whether it fits without saved tensors on the host.
  bool try_modules(std::size_t count) {
    const auto of = trials_.changed({.modules = first_of(regions_, count)});
    const std::string name = share_name(count, regions_.size());
    if (!of) return false;
    if (count > 0 && trials_.try_as_it_is(name, *of)) return true;
    trials_.try_offload(name, *of);
    return false;
  }

  /// The fewest blocks whose parameters are streamed, with these changes besides; where all are too
  /// few, saved tensors lie on the host, too. Returns whether something fits.
  bool search_streams(const HookedChanges& besides, const std::string& prefix) {
    if (streamable_ == 0 || trials_.is_cancelled()) return false;
    const auto streaming = [&](std::size_t count) {
      HookedChanges changes = besides;
      changes.streamed = count;
      return trials_.changed(changes);
    };
    const auto plain = streaming(0);
    if (!plain || trials_.fits_as_it_is(*plain)) return false;
    const Bytes excess = excess_bytes(plain->step, trials_.request().plan.available);
    const auto name = [&](std::size_t count) {
      return fmt::format("{}stream-{}-of-{}", prefix, count, streamable_);
    };
    const auto all = streaming(streamable_);
    if (!all) return false;
    if (!trials_.fits_as_it_is(*all)) {
      return tried_.trains && trials_.try_offload(name(streamable_) + "-offload", *all, excess);
    }
    std::size_t too_few = 0, enough = streamable_;
    while (enough - too_few > 1) {
      const std::size_t count = (too_few + enough) / 2;
      const auto of = streaming(count);
      (of && trials_.fits_as_it_is(*of) ? enough : too_few) = count;
    }
    const auto of = streaming(enough);
    return of && trials_.try_as_it_is(name(enough), *of, excess);
  }

  /// The fewest micro-batches with which the step fits, as it is and with all modules run again.
  void search_parts() {
    if (!trials_.request().plan.document.graph->micro_batch.first_node.valid()) return;
    if (trials_.request().plan.document.fixed_batch) return;
    const std::int64_t batch = trials_.request().plan.batch.samples;
    tried_.parts = batch > 1;
    bool has_checkpointed = regions_.empty();
    for (std::int64_t parts = 2; parts <= std::min(batch, most_micro_batches); ++parts) {
      if (batch % parts != 0 || trials_.is_cancelled()) continue;
      if (try_parts({}, parts, "")) return;
      if (!has_checkpointed) has_checkpointed = try_parts(regions_, parts, "-checkpoint");
    }
  }

  bool try_parts(const std::vector<ModuleRegion>& modules, std::int64_t parts,
                 std::string_view ending) {
    const auto of = trials_.changed({.modules = modules, .micro_batches = parts});
    return of && trials_.try_as_it_is(fmt::format("micro-batch-{}{}", parts, ending), *of);
  }

  CaseTrials& trials_;
  std::size_t streamable_;  // blocks
  TriedMeans tried_;
  std::vector<ModuleRegion> regions_;  // those that save most for their time first
  std::vector<ModuleRegion> nested_;   // others, some of them in others; none: nesting does not pay
};

}  // namespace

Result<std::vector<PytorchProposal>> make_pytorch_plans(const PytorchRequest& request,
                                                        WorkspaceSource& workspaces,
                                                        const ProposalOptions& options) {
  if (auto mistake = unplanned(*request.plan.document.graph)) return failure(*std::move(mistake));
  auto unchanged = hooked_case(request, workspaces, {});
  if (!unchanged) return tl::unexpected(unchanged.error());
  CheckReport report = check(unchanged->step, request.plan.card, request.process);
  WholeStep whole{.step = unchanged->step, .available = report.available_bytes};
  if (trains(request)) {
    if (auto updates = parameter_updates(*whole.step.graph)) whole.updates = *std::move(updates);
  }
  CaseTrials trials(request, workspaces, options, std::move(whole), Bytes() - report.headroom);
  if (report.fits) {
    trials.keep(std::string(unchanged_step), {.of = *unchanged}, std::move(report));
    return std::move(trials.proposals());
  }
  PytorchSearch search(trials);
  search.run();
  std::vector<PytorchProposal> proposals = std::move(trials.proposals());
  if (options.missing && std::ranges::all_of(proposals, &PytorchProposal::changes_training)) {
    options.missing(trials.missing().of_unchanged_training);
  }
  if (proposals.empty()) return failure(search.nothing_fits());
  std::ranges::stable_sort(proposals, {}, [](const PytorchProposal& proposal) {
    return std::tuple(proposal.changes_training, proposal.plan.totals.step_seconds);
  });
  return proposals;
}

}  // namespace stowage
