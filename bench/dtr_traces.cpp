// Our peak of recorded PyTorch training steps beside what the card measured.
//
//   dtr_traces FOLDER       or  STOWAGE_DTR_TRACES=FOLDER dtr_traces
//
// FOLDER holds the logs of github.com/uwsampl/dtr-prototype (fp32, Titan V). They go through the
// very lifetimes(), live_bytes() and peak() that `check` uses. Exit 1: a peak is more than half a
// percent off; 2: a log cannot be read; 77: there is nothing to measure.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/operator_trace.hpp"

namespace {

using namespace stowage;

struct MeasuredStep {
  const char* log;        ///< how the log's name begins
  double peak_megabytes;  ///< allocated on the card, 10^6 bytes
};
constexpr std::array measured_steps{MeasuredStep{"tv_densenet121-84-", 11027.6},
                                    MeasuredStep{"unet-6-", 8419.2},
                                    MeasuredStep{"transformer-10-", 9872.0}};
constexpr double tolerance_percent = 0.5;

const MeasuredStep* find_measured(const std::string& log) {
  for (const MeasuredStep& step : measured_steps) {
    if (log.starts_with(step.log)) return &step;
  }
  return nullptr;
}

double peak_megabytes(const std::filesystem::path& log) {
  std::ifstream input(log);
  const OperatorTrace trace = read_operator_trace(input);
  const auto live = live_bytes(lifetimes(trace.uses, trace.steps), trace.steps);
  return static_cast<double>(peak(live).bytes.count()) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("STOWAGE_DTR_TRACES");
  if (folder == nullptr) {
    fmt::print(stderr,
               "NOT RUN: no traces given. usage: {} FOLDER (or STOWAGE_DTR_TRACES=FOLDER)\n",
               argv[0]);
    return 77;
  }
  fmt::print("{:>12} {:>12} {:>9}  {}\n", "ours MB", "measured MB", "percent", "log");
  std::size_t seen = 0;
  bool near = true;
  std::error_code failed;
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    paths.insert(entry.path());
  }
  for (const auto& path : paths) {
    const std::string log = path.filename().string();
    const MeasuredStep* measured = find_measured(log);
    if (measured == nullptr) continue;
    double ours = 0;
    try {
      ours = peak_megabytes(path);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: {}\n", log, error.what());
      return 2;
    }
    const double percent = 100 * (ours - measured->peak_megabytes) / measured->peak_megabytes;
    fmt::print("{:>12.1f} {:>12.1f} {:>9.3f}  {}\n", ours, measured->peak_megabytes, percent, log);
    near = near && std::abs(percent) <= tolerance_percent;
    ++seen;
  }
  if (seen == 0) {
    fmt::print(stderr, "NOT RUN: no trace that was measured in {}\n", folder);
    return 77;
  }
  return near ? 0 : 1;
}
