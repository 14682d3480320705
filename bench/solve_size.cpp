// solve() by size: processor seconds and peak memory, each problem in a process of its own.
//
//   solve_size [--work UNITS] [--gap PERCENT] [SIZE | MODEL]...
//
// A SIZE is a number of operations: a decoder-only transformer's training step under Adam with as
// many layers as that takes, forward and backward on the GPU, updates on either side. A MODEL is a
// shipped one, at batch 1 (of more than 300 million parameters) or 16. The budgets are 30 and 80
// percent of what everything on the GPU takes, the work is UNITS (30 million). PERCENT is the gap
// of the overhead at which the search may end (1); at 0 it goes on until its effort or its time is
// spent.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {
namespace {

constexpr std::int64_t large_model = 300'000'000;  // parameters

Rates usual_rates() {
  Rates rates;
  rates.gpu_flops = 15e12;
  rates.gpu_bandwidth = 400e9;
  rates.cpu_flops = 2e11;
  rates.cpu_bandwidth = 2e10;
  rates.h2d_bandwidth = rates.d2h_bandwidth = 12e9;
  return rates;
}

// Operations and items in the order of a step; what is touched a second time by one operation is
// one touch.
class LayerSketch {
 public:
  explicit LayerSketch(const Rates& rates) : rates_(rates) {}

  std::int32_t item(std::int64_t bytes, bool wraps) {
    Item item{.name = fmt::format("i{}", problem_.items.size()),
              .bytes = Bytes(bytes),
              .wraps = wraps,
              .h2d_seconds = h2d_seconds(rates_, Bytes(bytes)),
              .d2h_seconds = d2h_seconds(rates_, Bytes(bytes))};
    problem_.items.push_back(std::move(item));
    return static_cast<std::int32_t>(problem_.items.size()) - 1;
  }

  void operation(Pin pin, const std::vector<std::int32_t>& reads,
                 const std::vector<std::int32_t>& writes, double flops) {
    const auto step = static_cast<std::int32_t>(problem_.operations.size());
    double bytes = 0;
    const auto touch = [&](std::int32_t index, bool is_write) {
      Item& item = problem_.items[static_cast<std::size_t>(index)];
      bytes += static_cast<double>(item.bytes.count());
      if (item.touches.empty() || item.touches.back().step != step) {
        item.touches.push_back({step, false, false});
      }
      (is_write ? item.touches.back().writes : item.touches.back().reads) = true;
    };
    for (const std::int32_t index : reads) touch(index, false);
    for (const std::int32_t index : writes) touch(index, true);
    Operation operation{.name = fmt::format("op{}", step), .pin = pin};
    operation.engines.push_back(
        {rates_.gpu_launch + std::max(flops / rates_.gpu_flops, bytes / rates_.gpu_bandwidth),
         Bytes()});
    operation.cpu_seconds = std::max(flops / rates_.cpu_flops, bytes / rates_.cpu_bandwidth);
    problem_.operations.push_back(std::move(operation));
  }

  ResidencyProblem finished() {
    for (Item& item : problem_.items) {
      bool written = false;
      for (const Touch& touch : item.touches) written = written || touch.writes;
      item.host_at_start = item.wraps ? !written : item.touches.front().reads;
    }
    return std::move(problem_);
  }

 private:
  Rates rates_;
  ResidencyProblem problem_;
};

// A layer is eight linear maps and eight pointwise operations: 16 forward, 24 backward, 8 updates.
constexpr int operations_a_layer = 48;

ResidencyProblem transformer(int operations) {
  constexpr std::int64_t value = 4 << 20;   // bytes of an activation
  constexpr std::int64_t weight = 9 << 20;  // bytes of a linear map's weight
  constexpr double flops = 2e9;
  const int layers = std::max(1, operations / operations_a_layer);
  LayerSketch step(usual_rates());
  struct Linear {
    std::int32_t weight, input, output, between;
  };
  std::vector<Linear> linears;
  std::int32_t flowing = step.item(value, false);
  for (int i = 0; i < 8 * layers; ++i) {
    // A little more at each map, so that few are worth the same.
    const Linear linear{step.item(weight + std::int64_t{4096} * (i % 64), true), flowing,
                        step.item(value + std::int64_t{512} * (i % 32), false),
                        step.item(value, false)};
    step.operation(Pin::gpu, {linear.weight, linear.input}, {linear.output}, flops);
    step.operation(Pin::gpu, {linear.output}, {linear.between}, 0);
    flowing = linear.between;
    linears.push_back(linear);
  }
  for (std::size_t i = linears.size(); i-- > 0;) {
    const Linear& linear = linears[i];
    const std::int32_t inner = step.item(value, false);
    const std::int32_t next = step.item(value, false);
    const std::int32_t gradient = step.item(weight, false);
    step.operation(Pin::gpu, {linear.output, flowing}, {inner}, 0);
    step.operation(Pin::gpu, {linear.input, inner}, {gradient}, flops);
    step.operation(Pin::gpu, {linear.weight, inner}, {next}, flops);
    const std::int32_t moments = step.item(2 * weight, true);
    step.operation(Pin::free, {linear.weight, gradient, moments}, {linear.weight, moments}, 0);
    flowing = next;
  }
  return step.finished();
}

ResidencyProblem shipped(const std::string& name) {
  const auto source = find_model(name, STOWAGE_SOURCE_DIR "/configs/models").value();
  const auto model = load_model(source.source, source.options).value();
  const auto graph = std::make_shared<const StepGraph>(
      lower(model, {.kernels = KernelSet::stowage, .optimizer = {.name = "adam"}}).value());
  std::int64_t parameters = 0;
  for (const Storage& storage : graph->storages) {
    if (storage.storage_class == StorageClass::parameter) parameters += storage.bytes.at(1) / 4;
  }
  const auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(graph, parameters > large_model ? 1 : 16, *workspaces).value();
  return make_problem(step, usual_rates(), {});
}

struct Measured {
  double seconds = 0;  // of the processor
  double wall = 0;
  double gap = 0;  // of the overhead
  double megabytes = 0;
  std::size_t operations = 0, items = 0;
  int cuts = 0;
};

struct Limits {
  Work work{30'000'000};
  double gap = 0.01;
};

Measured measure(const std::string& what, int percent, const Limits& limits) {
  const bool size = what.find_first_not_of("0123456789") == std::string::npos;
  const ResidencyProblem problem = size ? transformer(std::stoi(what)) : shipped(what);
  const Bytes all = evaluate(problem, all_gpu_placement(problem)).peak;
  const Bytes budget = std::max(memory_floor(problem).bytes, Bytes(all.count() / 100 * percent));
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  const auto start = std::chrono::steady_clock::now();
  WorkBudget work(limits.work);
  const auto solution = solve(problem, {.budget = budget, .target_gap = limits.gap, .work = &work});
  if (!solution) std::exit(3);
  getrusage(RUSAGE_SELF, &after);
  const auto seconds = [](const rusage& used) {
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  const double cost = solution->evaluation.cost_seconds;
  const double overhead = cost - solution->all_gpu_cost_seconds;
  Measured measured{.operations = problem.operations.size(), .items = problem.items.size()};
  measured.seconds = seconds(after) - seconds(before);
  measured.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  measured.gap = overhead > 0 ? (cost - solution->cost_lower_bound_seconds) / overhead : 0;
  measured.megabytes = static_cast<double>(after.ru_maxrss) * 1024 / 1e6;
  measured.cuts = solution->cuts;
  return measured;
}

Measured measured_apart(const std::string& what, int percent, const Limits& limits) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(3);
  const pid_t child = fork();
  if (child < 0) std::exit(3);
  if (child == 0) {
    const Measured measured = measure(what, percent, limits);
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 3);
  }
  close(ends[1]);
  Measured measured;
  int status = 0;
  const bool whole = read(ends[0], &measured, sizeof measured) == sizeof measured;
  waitpid(child, &status, 0);
  close(ends[0]);
  if (!whole || status != 0) {
    fmt::print(stderr, "{}: not solved\n", what);
    std::exit(3);
  }
  return measured;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  stowage::Limits limits;
  std::vector<std::string> asked;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--work" && i + 1 < argc)
      limits.work.units = std::atoll(argv[++i]);
    else if (word == "--gap" && i + 1 < argc)
      limits.gap = std::atof(argv[++i]) / 100;
    else
      asked.push_back(word);
  }
  if (asked.empty()) asked = {"1000", "12000", "60000", "gpt2-xl"};
  fmt::print("{:>10} {:>10} {:>8} {:>9} {:>9} {:>8} {:>8} {:>6}\n", "operations", "items", "budget",
             "cpu s", "wall s", "MB", "gap", "cuts");
  for (const std::string& what : asked) {
    for (const int percent : {30, 80}) {
      const auto m = stowage::measured_apart(what, percent, limits);
      fmt::print("{:>10} {:>10} {:>7}% {:>9.2f} {:>9.2f} {:>8.0f} {:>7.2f}% {:>6}  {}\n",
                 m.operations, m.items, percent, m.seconds, m.wall, m.megabytes, 100 * m.gap,
                 m.cuts, what);
      std::fflush(stdout);
    }
  }
  return 0;
}
