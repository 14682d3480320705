// Not a timing: the overhead of running a training step in less memory by recomputation, against
// the overheads that MONeT published for its schedules at the same memory.
//
//   recompute MONET.csv [--plans] [--effort X] [MODEL...]
//
// MONET.csv: model,batch,method,memory_gb,overhead_pct as in MONeT's README (Shah et al., ICLR
// 2021), measured on a P100; its solver had a day for each schedule. Ours are the roofline's
// seconds of a P100, forward to update, SGD without momentum. --plans adds the whole planner's
// shortest simulated step that takes the batch at once, without recomputation (swapped) and with it
// (mixed). --effort: a factor on the number of choices that are tried, not on plans.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/shipped_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/recompute/choose_recomputation.hpp"
#include "planner/recompute/recompute_search.hpp"
#include "planner/recompute/segments.hpp"

namespace {

using namespace stowage;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Measured {
  std::int64_t batch = 0;
  double memory_gib = 0, overhead = 0;
};

const std::map<std::string, std::string>& models() {
  static const std::map<std::string, std::string> names{{"ResNet-50", "resnet50"},
                                                        {"GoogLeNet", "googlenet"},
                                                        {"UNet", "unet"},
                                                        {"MobileNetV2", "mobilenet_v2"},
                                                        {"VGG-16", "vgg16"}};
  return names;
}

/// MONeT's rows by model; the file is trusted.
std::map<std::string, std::vector<Measured>> read_rows(const std::string& path) {
  std::map<std::string, std::vector<Measured>> rows;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == ',') {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    if (fields.size() != 5 || fields[2] != "MONeT") continue;
    rows[fields[0]].push_back({std::stoll(fields[1]), std::stod(fields[3]), std::stod(fields[4])});
  }
  return rows;
}

Host usual_host() {
  Host host;
  host.name = "bench";
  host.cpu_flops = 2e11;
  host.memory_bandwidth = 2e10;
  return host;
}

double gib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }

/// Of the plans that take the batch at once; none: there is none.
std::optional<double> shortest_step(const PlanRequest& request, WorkspaceSource& workspaces) {
  const auto plans = make_plans(request, workspaces);
  if (!plans) return std::nullopt;
  std::optional<double> shortest;
  for (const Plan& plan : *plans) {
    if (plan.step.graph->settings.micro_batches > 1) continue;
    if (!shortest || plan.totals.step_seconds < *shortest) shortest = plan.totals.step_seconds;
  }
  return shortest;
}

class Comparison {
 public:
  Comparison(StepDocument document, SizedStep step, const Card& card, WorkspaceSource& workspaces)
      : document_(std::move(document)),
        step_(std::move(step)),
        card_(card),
        rates_(make_rates(card, usual_host())),
        workspaces_(workspaces),
        model_(step_, rates_) {
    const ResidencyProblem problem = make_problem(step_, rates_, {.all_on_gpu = true});
    whole_ = evaluate(problem, all_gpu_placement(problem, Bytes()));
    whole_step_ = assemble_plan(step_, problem, all_gpu_placement(problem),
                                {.budget = GpuBudget::unlimited()})
                      .totals.step_seconds;
  }

  void print_whole(const std::string& name) const {
    fmt::print("{}, batch {}: {} nodes, {} groups; all on the GPU {:.2f} GiB, {:.3f} s\n", name,
               step_.batch, step_.graph->nodes.size(), model_.groups().size(), gib(whole_.peak),
               whole_.compute_seconds);
  }

  void print_segments() {
    const std::size_t count = default_segment_count(model_);
    const RecomputeOutcome usual = model_.outcome(segment_choice(model_, step_, count), Bytes());
    const FoundChoice ours = search_choice(model_, step_, {.limit = usual.peak});
    fmt::print("  {} segments: {:.2f} GiB, {:.2f}%; the search at that memory {:.2f}%\n", count,
               gib(usual.peak), percent(usual.extra_seconds), percent(ours.outcome.extra_seconds));
  }

  void print_row(const Measured& theirs, bool plans, double effort) {
    const GpuBudget budget(Bytes(static_cast<std::int64_t>(theirs.memory_gib * (1 << 30))));
    const auto start = Clock::now();
    const auto points = choose_recomputation(step_, rates_, {.budget = budget, .effort = effort});
    const double seconds = seconds_since(start);
    std::string ours = "fits";
    if (!points.empty()) {
      ours = fmt::format("{:.2f}%{}", percent(points.front().extra_seconds),
                         points.front().fits ? "" : "!");
    }
    fmt::print("  {:5.2f} GiB  MONeT {:6.2f}%  recomputed {:>8}  segments {:>8}  {:5.1f} s",
               theirs.memory_gib, theirs.overhead, ours, best_segments(budget), seconds);
    if (plans) print_plans(budget);
    fmt::print("\n");
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] double percent(double seconds) const {
    return 100 * seconds / whole_.compute_seconds;
  }

  /// The cheapest number of segments that fits.
  [[nodiscard]] std::string best_segments(GpuBudget budget) {
    std::optional<double> best;
    for (std::size_t count = 1; count <= model_.groups().size(); ++count) {
      const auto outcome = model_.outcome(segment_choice(model_, step_, count), budget.bytes);
      if (!budget.fits(outcome.peak) || (best && *best <= outcome.extra_seconds)) continue;
      best = outcome.extra_seconds;
    }
    return best ? fmt::format("{:.2f}%", percent(*best)) : "none";
  }

  /// What `plan` recommends of the plans that take the batch at once, with recomputation and
  /// without.
  void print_plans(GpuBudget budget) {
    const auto start = Clock::now();
    PlanRequest request{.document = document_,
                        .batch = WholeBatch(step_.batch),
                        .card = card_,
                        .host = usual_host(),
                        .budget = budget};
    const auto over = [&](const std::optional<double>& seconds) {
      return seconds ? fmt::format("{:.2f}%", 100 * (*seconds / whole_step_ - 1))
                     : std::string("none");
    };
    const auto mixed = shortest_step(request, workspaces_);
    request.levers.recompute = false;
    const auto swapped = shortest_step(request, workspaces_);
    fmt::print("  planned: swapped {:>8}  mixed {:>8}  {:5.1f} s", over(swapped), over(mixed),
               seconds_since(start));
  }

  StepDocument document_;
  SizedStep step_;
  Card card_;
  Rates rates_;
  WorkspaceSource& workspaces_;
  RecomputeModel model_;
  Evaluation whole_;
  double whole_step_ = 0;  ///< seconds, simulated
};

Result<void> compare(const std::string& name, const std::vector<Measured>& rows, bool plans,
                     double effort) {
  auto shipped = shipped_step(models().at(name), "p100-pcie-16gb", {.optimizer = "sgd"});
  if (!shipped) return tl::unexpected(shipped.error());
  auto& [description, card, document] = *shipped;
  const auto workspaces = rule_workspace_source(card.compute_capability);
  auto step = size_step(document.graph, rows.front().batch, *workspaces);
  if (!step) return tl::unexpected(step.error());
  Comparison comparison(std::move(document), *std::move(step), card, *workspaces);
  comparison.print_whole(name);
  comparison.print_segments();
  for (const Measured& row : rows) comparison.print_row(row, plans, effort);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted;
  std::string file;
  bool plans = false;
  double effort = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--plans") {
      plans = true;
    } else if (word == "--effort" && i + 1 < argc) {
      effort = std::stod(argv[++i]);
    } else if (file.empty()) {
      file = word;
    } else {
      wanted.push_back(word);
    }
  }
  const auto rows = read_rows(file);
  if (rows.empty()) {
    fmt::print(stderr, "usage: recompute MONET.csv [--plans] [--effort X] [MODEL...]\n");
    return 2;
  }
  for (const auto& [name, of_model] : rows) {
    const bool is_wanted = wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
    if (!is_wanted || !models().contains(name)) continue;
    if (const auto done = compare(name, of_model, plans, effort); !done) {
      fmt::print("{}: {}\n", name, done.error().front().message);
    }
  }
  return 0;
}
