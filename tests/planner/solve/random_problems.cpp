#include "tests/planner/solve/random_problems.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

std::int64_t below(Random& random, std::int64_t bound) {
  return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
}

namespace {

constexpr double tick = 1.0 / 1024;

double seconds(Random& random, std::int64_t ticks) {
  return static_cast<double>(below(random, ticks + 1)) * tick;
}

Operation random_operation(Random& random, std::size_t index) {
  Operation operation;
  operation.name = "op" + std::to_string(index);
  const std::int64_t engines = below(random, 3) == 0 ? 2 : 1;
  for (std::int64_t k = 0; k < engines; ++k) {
    operation.engines.push_back({seconds(random, 6), Bytes(below(random, 4) << 20)});
  }
  operation.cpu_seconds = seconds(random, 24);
  if (below(random, 4) == 0) operation.temporaries = Bytes(below(random, 3) << 20);
  const std::int64_t pin = below(random, 10);
  operation.pin = pin < 5 ? Pin::gpu : pin < 6 ? Pin::cpu : Pin::free;
  return operation;
}

Item random_item(Random& random, std::size_t index, std::int64_t steps) {
  Item item;
  item.name = "item" + std::to_string(index);
  item.bytes = Bytes((1 + below(random, 8)) << 20);
  item.h2d_seconds = seconds(random, 12);
  item.d2h_seconds = seconds(random, 12);
  item.wraps = below(random, 3) == 0;
  const bool written = below(random, 4) != 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    if (below(random, 2) == 0) continue;
    const std::int64_t kind = written ? below(random, 5) : 4;
    item.touches.push_back({static_cast<std::int32_t>(t), kind != 0, kind <= 1});
  }
  if (item.touches.empty()) item.touches.push_back({0, true, written});
  const bool has_write = std::any_of(item.touches.begin(), item.touches.end(),
                                     [](const Touch& touch) { return touch.writes; });
  item.host_at_start = item.wraps ? !has_write : below(random, 2) == 0;
  if (!item.wraps && item.touches.front().reads && !item.host_at_start) {
    if (has_write)
      item.touches.front() = {item.touches.front().step, false, true};
    else
      item.host_at_start = true;
  }
  return item;
}

std::size_t unknowns(const ResidencyProblem& problem) {
  std::size_t count = 0;
  for (const Operation& operation : problem.operations) count += operation.pin == Pin::free ? 1 : 0;
  for (const Item& item : problem.items) {
    count += item.touches.size() - (item.wraps ? 0 : 1);
    for (const Touch& touch : item.touches) {
      const Pin pin = problem.operations[static_cast<std::size_t>(touch.step)].pin;
      count += !touch.writes && pin != Pin::gpu ? 1 : 0;
    }
  }
  return count;
}

// The choices of one item, each judged by evaluate() on the item alone.
std::vector<ItemChoice> all_choices(const ResidencyProblem& problem, const Item& item,
                                    const std::vector<Device>& device) {
  ResidencyProblem alone;
  alone.operations = problem.operations;
  for (Operation& operation : alone.operations) {
    for (EngineCost& engine : operation.engines) engine = {};
    operation.cpu_seconds = 0;
    operation.temporaries = Bytes();
  }
  alone.items.push_back(item);
  const std::size_t touches = item.touches.size();
  const std::size_t gaps = touches - (item.wraps ? 0 : 1);
  std::vector<ItemChoice> result;
  for (unsigned mask = 0; mask < (1U << (touches + gaps)); ++mask) {
    ItemChoice choice;
    for (std::size_t i = 0; i < touches; ++i) choice.on_gpu.push_back(((mask >> i) & 1U) != 0);
    for (std::size_t i = 0; i < gaps; ++i) {
      choice.resident.push_back(((mask >> (touches + i)) & 1U) != 0);
    }
    const Evaluation evaluation = evaluate(
        alone,
        {device, std::vector<std::int32_t>(device.size(), 0), {choice.on_gpu}, {choice.resident}});
    if (!evaluation.consistent) continue;
    choice.seconds = evaluation.cost_seconds;
    for (const Bytes bytes : evaluation.memory) choice.memory.push_back(bytes.count());
    result.push_back(std::move(choice));
  }
  return result;
}

struct Enumeration {
  const ResidencyProblem& problem;
  const DeviceAssignment& assignment;
  const std::vector<Bytes>& limits;
  std::vector<std::int64_t> memory;
  double best = std::numeric_limits<double>::infinity();

  // The fastest engine that fits, at every step by itself: memory there depends on no other engine.
  void finish(double cost) {
    for (std::size_t t = 0; t < memory.size(); ++t) {
      const Operation& operation = problem.operations[t];
      if (assignment.device[t] == Device::cpu) {
        cost += operation.cpu_seconds;
        if (memory[t] > limits[t].count()) return;
        continue;
      }
      double fastest = std::numeric_limits<double>::infinity();
      for (const EngineCost& engine : operation.engines) {
        const Bytes own = engine.workspace + operation.temporaries;
        if (memory[t] + own.count() <= limits[t].count())
          fastest = std::min(fastest, engine.seconds);
      }
      cost += fastest;
    }
    best = std::min(best, cost);
  }

  void place(std::size_t item, double cost) {
    if (cost >= best) return;
    if (item == assignment.choices.size()) return finish(cost);
    for (const ItemChoice& choice : assignment.choices[item]) {
      bool fits = true;
      for (std::size_t t = 0; t < memory.size(); ++t) {
        memory[t] += choice.memory[t];
        fits = fits && memory[t] <= limits[t].count();
      }
      if (fits) place(item + 1, cost + choice.seconds);
      for (std::size_t t = 0; t < memory.size(); ++t) memory[t] -= choice.memory[t];
    }
  }
};

}  // namespace

ResidencyProblem random_problem(Random& random) {
  while (true) {
    ResidencyProblem problem;
    const std::int64_t steps = 1 + below(random, 6);
    for (std::int64_t t = 0; t < steps; ++t) {
      problem.operations.push_back(random_operation(random, static_cast<std::size_t>(t)));
    }
    const std::int64_t items = 1 + below(random, 5);
    for (std::int64_t i = 0; i < items; ++i) {
      problem.items.push_back(random_item(random, static_cast<std::size_t>(i), steps));
    }
    if (unknowns(problem) <= 18) return problem;
  }
}

std::vector<DeviceAssignment> all_assignments(const ResidencyProblem& problem) {
  std::vector<DeviceAssignment> result;
  const std::size_t steps = problem.operations.size();
  for (unsigned mask = 0; mask < (1U << steps); ++mask) {
    DeviceAssignment assignment;
    bool allowed = true;
    for (std::size_t t = 0; t < steps; ++t) {
      const bool gpu = ((mask >> t) & 1U) != 0;
      assignment.device.push_back(gpu ? Device::gpu : Device::cpu);
      allowed = allowed && problem.operations[t].pin != (gpu ? Pin::cpu : Pin::gpu);
    }
    if (!allowed) continue;
    for (const Item& item : problem.items) {
      assignment.choices.push_back(all_choices(problem, item, assignment.device));
    }
    result.push_back(std::move(assignment));
  }
  return result;
}

double cheapest_priced(const ResidencyProblem& problem,
                       const std::vector<DeviceAssignment>& assignments,
                       const std::vector<double>& price) {
  double best = std::numeric_limits<double>::infinity();
  for (const DeviceAssignment& assignment : assignments) {
    double cost = 0;
    for (std::size_t t = 0; t < price.size(); ++t) {
      const Operation& operation = problem.operations[t];
      double least = operation.cpu_seconds;
      if (assignment.device[t] == Device::gpu) {
        least = std::numeric_limits<double>::infinity();
        for (const EngineCost& engine : operation.engines) {
          const Bytes own = engine.workspace + operation.temporaries;
          least = std::min(least, engine.seconds + price[t] * static_cast<double>(own.count()));
        }
      }
      cost += least;
    }
    for (const std::vector<ItemChoice>& choices : assignment.choices) {
      double least = std::numeric_limits<double>::infinity();
      for (const ItemChoice& choice : choices) {
        double priced = choice.seconds;
        for (std::size_t t = 0; t < price.size(); ++t) {
          priced += price[t] * static_cast<double>(choice.memory[t]);
        }
        least = std::min(least, priced);
      }
      cost += least;
    }
    best = std::min(best, cost);
  }
  return best;
}

std::optional<double> cheapest_within(const ResidencyProblem& problem,
                                      const std::vector<DeviceAssignment>& assignments,
                                      const std::vector<Bytes>& limits) {
  double best = std::numeric_limits<double>::infinity();
  for (const DeviceAssignment& assignment : assignments) {
    Enumeration enumeration{problem, assignment, limits,
                            std::vector<std::int64_t>(problem.operations.size(), 0), best};
    enumeration.place(0, 0);
    best = enumeration.best;
  }
  if (best == std::numeric_limits<double>::infinity()) return std::nullopt;
  return best;
}

std::optional<double> cheapest_within(const ResidencyProblem& problem,
                                      const std::vector<DeviceAssignment>& assignments,
                                      Bytes budget) {
  return cheapest_within(problem, assignments,
                         std::vector<Bytes>(problem.operations.size(), budget));
}

}  // namespace stowage
