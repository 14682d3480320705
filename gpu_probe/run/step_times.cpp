#include "gpu_probe/run/step_times.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

double step_seconds(const StepTimes& times) {
  TimeSpan whole{.begin = std::numeric_limits<double>::infinity(), .end = 0};
  for (const auto* spans : {&times.nodes, &times.copies}) {
    for (const TimeSpan& span : *spans) {
      whole.begin = std::min(whole.begin, span.begin);
      whole.end = std::max(whole.end, span.end);
    }
  }
  return std::max(0.0, whole.seconds());
}

double kernel_seconds(const StepTimes& times) {
  double seconds = 0;
  for (const TimeSpan& span : times.nodes) seconds += span.seconds();
  return seconds;
}

double copy_seconds(const StepTimes& times, const Plan& plan, Direction lane) {
  double seconds = 0;
  for (std::size_t i = 0; i < times.copies.size(); ++i) {
    if (direction_of(plan, plan.transfers[i]) == lane) seconds += times.copies[i].seconds();
  }
  return seconds;
}

}  // namespace stowage
