// Plans and what becomes of them when they are run: arena, bytes and seconds, planned and measured.
//
//   validate [--on host|cuda] [--steps N] [--pytorch PYTHON] [MODEL BATCH]
//
// Each model is planned with room for everything and run; with the times of that run it is planned
// at three budgets, so many percent of the arena with everything resident, and run again. On a GPU
// the models are resnet50, vgg16, gpt2-medium and unet, and PyTorch's own step stands beside, eager
// with everything resident, and with its saved tensors offloaded at the budget's memory. On the
// host, whose kernels stand in for the GPU's, they are small, and seconds are the sum of the
// kernels that ran beside no other; waits: percent of the time in which the run waited for a core.
//
// Exit 1: an arena or the bytes are not as planned, a check failed, or on a GPU a step is over 15
// percent off; 2: something cannot be planned or run. On the host seconds are shown and decide
// nothing: a machine is seldom idle.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/shipped_step.hpp"
#include "bench/validate/pytorch.hpp"
#include "estimator/arena/arena.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/gather_times.hpp"
#include "gpu_probe/run/time_check.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/propose/proposals.hpp"

namespace {

using namespace stowage;
using validate_bench::pytorch_seconds;
using validate_bench::PytorchStep;

constexpr double most_off = 0.15;
constexpr double cuda_tolerance = 1e-3;
constexpr std::array percents{100, 70, 45};

struct Scenario {
  std::string model;
  std::int64_t batch = 1;
  std::optional<std::int64_t> seq = {};
};

const std::vector<Scenario> on_a_gpu{
    {"resnet50", 32}, {"vgg16", 32}, {"gpt2-medium", 2, 512}, {"unet", 2}};
const std::vector<Scenario> on_the_host{
    {"mnist-cnn", 64}, {"resnet18", 2}, {"squeezenet1_0", 2}, {"vit_tiny_patch16_224", 2}};

struct Settings {
  bool on_cuda = false;
  std::int64_t steps = 3;
  std::string python;
  std::vector<Scenario> scenarios;
};

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(render(result.error()));
  return *std::move(result);
}

PlanRequest request_for(const Scenario& scenario, const std::string& card) {
  ShippedStep shipped =
      value_of(shipped_step(scenario.model, card, {.optimizer = "adam"}, {}, scenario.seq));
  return {.document = std::move(shipped.document),
          .description = shipped.description,
          .batch = WholeBatch(scenario.batch),
          .card = shipped.card,
          .host = this_host(),
          // But for updates: where the host stands in for the GPU, a CPU that is as quick would
          // take all kernels, and nothing would be copied.
          .levers = {.operators = false},
          .stowage_version = "bench"};
}

/// The shortest step of those that leave the training as it is.
Result<Plan> planned(const PlanRequest& request, WorkspaceSource& workspaces) {
  auto plans = make_plans(request, workspaces);
  if (!plans) return tl::unexpected(std::move(plans.error()));
  std::erase_if(*plans, [](const Plan& plan) {
    return std::ranges::any_of(plan.remarks, [](const std::string& remark) {
      return remark.starts_with("changes the training");
    });
  });
  if (plans->empty()) return failure("every plan changes the training");
  return *std::ranges::min_element(*plans, {},
                                   [](const Plan& plan) { return plan.totals.step_seconds; });
}

class Bench {
 public:
  Bench(const Settings& settings, Backend& backend) : settings_(settings), backend_(backend) {}

  /// Whether everything was as planned.
  bool run() {
    fmt::print("on {}, {} steps each; host: {}\n", backend_.name(), settings_.steps,
               this_host().name);
    fmt::print("{:<12} {:>5} {:>7} {:>23} {:>23} {:>17} {:>5} {}\n", "model", "batch", "budget",
               "arena planned, touched", "bytes planned, moved", "s planned, run", "waits",
               settings_.python.empty() ? "" : "PyTorch resident, offloaded");
    for (const Scenario& scenario : settings_.scenarios) run(scenario);
    return good_;
  }

 private:
  [[nodiscard]] std::string card() const {
    const std::string name = backend_.name();
    return settings_.on_cuda ? name.substr(name.find(' ') + 1) : "rtx3060";
  }

  RunReport executed(const Plan& plan) {
    return value_of(
        run_plan(plan, backend_,
                 {.steps = settings_.steps, .tolerance = settings_.on_cuda ? cuda_tolerance : 0}));
  }

  void run(const Scenario& scenario) {
    PlanRequest request = request_for(scenario, card());
    const auto workspaces = rule_workspace_source(request.card.compute_capability);
    request.budget = request.available = value_of(least_whole_arena(request, *workspaces));
    const Plan resident = value_of(planned(request, *workspaces));
    const RunReport first = executed(resident);
    MeasuredTimes times = gather_times(resident, first.measured.times, !settings_.on_cuda);
    times.backend = first.backend;
    times.host = request.host.name;
    request.measured = std::make_shared<const MeasuredTimes>(std::move(times));
    const Bytes whole = request.budget.bytes;
    for (const int percent : percents) {
      request.budget = Bytes(whole.count() / 100 * percent);
      const auto plan = planned(request, *workspaces);
      if (plan) {
        tell(scenario, percent, *plan, executed(*plan));
      } else {
        fmt::print("{:<12} {:>5} {:>6}% {}\n", scenario.model, scenario.batch, percent,
                   plan.error().front().message);
      }
    }
  }

  void tell(const Scenario& scenario, int percent, const Plan& plan, const RunReport& report) {
    const MeasuredRun& measured = report.measured;
    const auto compared = compared_seconds(plan, measured.times, !settings_.on_cuda);
    const ComparedSeconds& seconds = compared[(compared.size() - 1) / 2];
    const std::int64_t moved = (measured.h2d.bytes + measured.d2h.bytes).count() / settings_.steps;
    const PytorchStep pytorch{settings_.python, scenario.model, scenario.batch, scenario.seq};
    std::string beside;
    if (!settings_.python.empty()) {
      PytorchStep offloaded = pytorch;
      offloaded.offload = true;
      offloaded.memory = plan.inputs.budget.bytes;
      beside = fmt::format("{}, {}", pytorch_seconds(pytorch), pytorch_seconds(offloaded));
    }
    fmt::print("{:<12} {:>5} {:>6}% {:>11} {:>11} {:>11} {:>11} {:>8.4f} {:>8.4f} {:>5.0f} {}\n",
               scenario.model, scenario.batch, percent, plan.totals.arena.count(),
               measured.gpu_high_water.count(), (plan.totals.h2d + plan.totals.d2h).count(), moved,
               seconds.planned, seconds.measured, 100 * measured.waits.value_or(0), beside);
    for (const Check& check : report.checks) {
      if (!check.passed) complain(fmt::format("{}: {}", check.name, check.detail));
    }
    if (round_up(measured.gpu_high_water, arena_alignment) != plan.totals.arena) {
      complain("the arena is not touched to its end");
    }
    const double off = std::abs(seconds.ratio() - 1);
    if (settings_.on_cuda && off > most_off) {
      complain(fmt::format("the step is {:.0f} percent off", 100 * off));
    }
    std::fflush(stdout);
  }

  void complain(const std::string& what) {
    fmt::print("  {}\n", what);
    good_ = false;
  }

  const Settings& settings_;
  Backend& backend_;
  bool good_ = true;
};

Settings settings_of(const std::vector<std::string>& words) {
  Settings settings;
  std::vector<std::string> scenario;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--on" && has_value) {
      settings.on_cuda = words[++i] == "cuda";
    } else if (words[i] == "--steps" && has_value) {
      settings.steps = std::max(1LL, std::stoll(words[++i]));
    } else if (words[i] == "--pytorch" && has_value) {
      settings.python = words[++i];
    } else {
      scenario.push_back(words[i]);
    }
  }
  if (scenario.size() == 2) {
    settings.scenarios = {{scenario[0], std::stoll(scenario[1])}};
  } else if (scenario.empty()) {
    settings.scenarios = settings.on_cuda ? on_a_gpu : on_the_host;
  } else {
    throw std::runtime_error(
        "usage: validate [--on host|cuda] [--steps N] [--pytorch PYTHON] [MODEL BATCH]");
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = settings_of({argv + 1, argv + argc});
    const auto backend = value_of(settings.on_cuda ? open_cuda_backend(default_cuda_setup(""))
                                                   : open_host_backend());
    return Bench(settings, *backend).run() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
