// How check grows with the network: 10,000, 30,000 and 100,000 operators, written out layer by
// layer and by `repeat`, through every stage from the text to the verdict.
//
//   scale [OPERATORS...]
//
// Each network has a process of its own, so that its memory is its own. Prints milliseconds of CPU
// time (everything here runs in one thread, and a busy machine lengthens that least) a
// stage, their sum, the most memory that the process held, and the growth: time an operator as a
// multiple of the first network's (1.00 is linear). Exit code 1 where 100,000 operators take a
// second or 500 MB.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/check/check.hpp"
#include "estimator/model/build_model.hpp"
#include "estimator/model/description_reader.hpp"
#include "estimator/model/expand.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/text/yaml_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"

namespace stowage {
namespace {

constexpr std::int64_t batch = 8;
constexpr double compute_capability = 8.6;
constexpr double most_seconds = 1;
constexpr double most_megabytes = 500;
constexpr int marked_operators = 100'000;

enum class Form { written_out, by_repeat };

constexpr std::string_view stage_names[] = {"yaml",  "read", "expand", "build",
                                            "lower", "size", "check"};
constexpr std::size_t stage_count = std::size(stage_names);

struct Measured {
  double milliseconds[stage_count] = {};
  double total = 0;
  double megabytes = 0;
};

constexpr std::string_view opening =
    "model: generated\n"
    "inputs:\n"
    "  image: {shape: [batch, 8, 32, 32]}\n"
    "  label: {shape: [batch], dtype: int64}\n";
constexpr std::string_view stem =
    "layers:\n"
    "  - conv2d: {name: stem, from: image, channels: 8, kernel: 3, padding: 1}\n";
constexpr std::string_view ending =
    "  - flatten: {name: flat}\n"
    "  - linear: {name: head, features: 10}\n"
    "loss:\n"
    "  cross_entropy: {from: [head, label]}\n";

/// Residual units of four operators each: about `operators` of them in all.
std::string network(int operators, Form form) {
  const int units = operators / 4 - 1;
  if (form == Form::by_repeat) {
    return fmt::format(
        "{}blocks:\n"
        "  unit:\n"
        "    layers:\n"
        "      - conv2d: {{name: conv, channels: 8, kernel: 3, padding: 1, bias: false}}\n"
        "      - batch_norm: {{name: norm}}\n"
        "      - relu: {{name: relu}}\n"
        "      - add: {{name: sum, from: [relu, input]}}\n"
        "{}  - unit: {{name: unit, repeat: {}}}\n{}",
        opening, stem, units, ending);
  }
  std::string text = fmt::format("{}{}", opening, stem);
  std::string before = "stem";
  for (int i = 0; i < units; ++i) {
    text += fmt::format(
        "  - conv2d: {{name: conv{0}, from: {1}, channels: 8, kernel: 3, padding: 1, bias: "
        "false}}\n"
        "  - batch_norm: {{name: norm{0}}}\n"
        "  - relu: {{name: relu{0}}}\n"
        "  - add: {{name: sum{0}, from: [relu{0}, {1}]}}\n",
        i, before);
    before = fmt::format("sum{}", i);
  }
  return text + std::string(ending);
}

template <typename T>
T value_of(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}", render(result.error()));
    std::exit(2);
  }
  return *std::move(result);
}

class Stopwatch {
 public:
  /// Milliseconds of this process since the last call, or since it was made.
  double lap() {
    const double now = processor_time();
    return now - std::exchange(last_, now);
  }

 private:
  static double processor_time() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
  double last_ = processor_time();
};

// What load_model and `stowage check` do, with a clock between the stages.
Measured measure(const std::string& text) {
  Measured measured;
  Stopwatch watch;
  std::size_t stage = 0;
  const auto done = [&] { measured.milliseconds[stage++] = watch.lap(); };
  const auto source = std::make_shared<const SourceText>(SourceText{"generated", text});
  ModelGraph model;
  {
    const YamlDocument document = value_of(read_yaml(source));
    done();
    Mistakes mistakes(source);
    const ModelDescription description = read_description(document, {}, mistakes);
    done();
    ExpandedModel expanded = expand(description, mistakes);
    done();
    model = build_model(description, std::move(expanded), mistakes);
    if (mistakes.any_errors()) value_of<int>(tl::unexpected(std::move(mistakes).in_order()));
  }
  done();
  const auto graph = std::make_shared<const StepGraph>(
      value_of(lower(model, {.kernels = KernelSet::pytorch, .optimizer = {.name = "adam"}})));
  done();
  const auto workspaces = rule_workspace_source(compute_capability);
  const SizedStep step = value_of(size_step(graph, batch, *workspaces));
  done();
  const CheckReport report = check(step, generic_card(80_GiB), {});
  done();
  if (report.tensor_bytes() == Bytes()) std::exit(3);
  for (const double stage_time : measured.milliseconds) measured.total += stage_time;
  return measured;
}

// In a child: what it prints comes back through a pipe, its memory from the system.
Measured measured_apart(const std::string& text) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(3);
  const pid_t child = fork();
  if (child < 0) std::exit(3);
  if (child == 0) {
    const Measured measured = measure(text);
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 3);
  }
  Measured measured;
  int status = 0;
  rusage used = {};
  const bool whole = read(ends[0], &measured, sizeof measured) == sizeof measured;
  wait4(child, &status, 0, &used);
  close(ends[0]);
  close(ends[1]);
  if (!whole || status != 0) std::exit(3);
  measured.megabytes = static_cast<double>(used.ru_maxrss) * 1024 / 1e6;
  return measured;
}

/// The median of `runs` by total time.
Measured median(const std::string& text, int runs) {
  std::vector<Measured> all;
  for (int i = 0; i < runs; ++i) all.push_back(measured_apart(text));
  std::ranges::sort(all, {}, &Measured::total);
  return all[all.size() / 2];
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  using namespace stowage;
  constexpr int runs = 3;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {10'000, 30'000, marked_operators};
  bool missed = false;
  for (const Form form : {Form::written_out, Form::by_repeat}) {
    fmt::print("{}, median of {} runs, milliseconds:\n{:>9}",
               form == Form::written_out ? "written out" : "by repeat", runs, "operators");
    for (const std::string_view name : stage_names) fmt::print("{:>8}", name);
    fmt::print("{:>8}{:>8}{:>8}\n", "total", "MB", "growth");
    double first_share = 0;
    for (const int size : sizes) {
      const Measured measured = median(network(size, form), runs);
      fmt::print("{:>9}", size);
      for (const double stage : measured.milliseconds) fmt::print("{:8.1f}", stage);
      const double share = measured.total / size;
      if (first_share == 0) first_share = share;
      fmt::print("{:8.1f}{:8.0f}{:8.2f}\n", measured.total, measured.megabytes,
                 share / first_share);
      if (size != marked_operators) continue;
      missed =
          missed || measured.total > 1000 * most_seconds || measured.megabytes > most_megabytes;
    }
  }
  if (missed) {
    fmt::print("missed: {} operators within {} s and {} MB\n", marked_operators, most_seconds,
               most_megabytes);
  }
  return missed ? 1 : 0;
}
