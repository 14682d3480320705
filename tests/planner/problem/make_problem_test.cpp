#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/residency_problem.hpp"

namespace stowage {
namespace {

StorageId add(StepGraph& graph, const char* name, StorageClass storage_class,
              Persistence persistence, bool carries_over = false) {
  Storage storage;
  storage.name = name;
  storage.storage_class = storage_class;
  storage.persistence = persistence;
  storage.carries_over = carries_over;
  graph.storages.push_back(storage);
  return StorageId::of(graph.storages.size() - 1);
}

TensorView view(StorageId storage) {
  TensorView result;
  result.storage = storage;
  return result;
}

void add_node(StepGraph& graph, const char* name, Phase phase, std::vector<StorageId> reads,
              std::vector<StorageId> writes, std::vector<StorageId> temporaries = {}) {
  KernelNode node;
  node.name = name;
  node.phase = phase;
  for (const StorageId id : reads) node.reads.push_back(view(id));
  for (const StorageId id : writes) node.writes.push_back(view(id));
  node.temporaries = std::move(temporaries);
  graph.nodes.push_back(std::move(node));
}

// One layer, one frozen weight, one update; every kind of storage there is.
SizedStep small_step() {
  StepGraph graph;
  const StorageId x = add(graph, "x", StorageClass::input, Persistence::from_host);
  const StorageId w = add(graph, "w", StorageClass::parameter, Persistence::persistent, true);
  const StorageId frozen = add(graph, "frozen", StorageClass::parameter, Persistence::persistent);
  const StorageId y = add(graph, "y", StorageClass::activation, Persistence::transient);
  const StorageId dw = add(graph, "dw", StorageClass::gradient, Persistence::transient);
  const StorageId m = add(graph, "m", StorageClass::optimizer_state, Persistence::persistent, true);
  const StorageId scratch = add(graph, "scratch", StorageClass::temporary, Persistence::transient);
  add(graph, "untouched", StorageClass::buffer, Persistence::persistent);
  add_node(graph, "forward", Phase::forward, {x, w, frozen}, {y}, {scratch});
  add_node(graph, "relu", Phase::forward, {y}, {y});
  add_node(graph, "backward", Phase::backward, {x, y, y}, {dw});
  add_node(graph, "update.w", Phase::update, {w, dw, m}, {w, m});
  SizedStep step;
  step.graph = std::make_shared<const StepGraph>(std::move(graph));
  for (const std::int64_t bytes : {10, 20, 30, 40, 50, 60, 70, 80}) {
    step.storage_bytes.emplace_back(bytes);
  }
  step.engines = {{{"fast", Bytes(500)}, {"small", Bytes(5)}}, {}, {}, {}};
  step.flops = {1000, 0, 0, 0};
  step.bytes_moved = {0, 0, 0, 0};
  return step;
}

Rates simple_rates() {
  Rates rates;
  rates.gpu_flops = 1000;
  rates.cpu_flops = 100;
  rates.gpu_launch = rates.cpu_launch = 0;
  rates.h2d_bandwidth = 10;
  rates.d2h_bandwidth = 5;
  rates.h2d_latency = rates.d2h_latency = 1;
  return rates;
}

std::string touches_of(const Item& item) {
  std::string result;
  for (const Touch& touch : item.touches) {
    result +=
        std::to_string(touch.step) + (touch.reads ? "r" : "") + (touch.writes ? "w" : "") + " ";
  }
  return result;
}

const Item& item(const ResidencyProblem& problem, std::string_view name) {
  for (const Item& candidate : problem.items) {
    if (candidate.name == name) return candidate;
  }
  FAIL("no item ", name);
  return problem.items.front();
}

}  // namespace

TEST_CASE("make_problem: items are what nodes touch, temporaries are their operation's") {
  const ResidencyProblem problem = make_problem(small_step(), simple_rates(), {});
  CHECK(ill_formed(problem) == "");
  std::vector<std::string> names;
  for (const Item& i : problem.items) names.push_back(i.name);
  CHECK(names == std::vector<std::string>{"x", "w", "frozen", "y", "dw", "m"});
  CHECK(problem.storage_of[5] == StorageId{5});
  CHECK(problem.operations[0].temporaries == Bytes(256));
  CHECK(problem.operations[1].temporaries == Bytes(0));
  CHECK(touches_of(item(problem, "w")) == "0r 3rw ");
  CHECK(touches_of(item(problem, "y")) == "0w 1rw 2r ");
  CHECK(touches_of(item(problem, "dw")) == "2w 3r ");
  CHECK(touches_of(item(problem, "m")) == "3rw ");
}

// Copies move the bytes without padding, at their own rates (the last test case).
TEST_CASE("make_problem: a place on the GPU has whole granules, each by itself") {
  SizedStep step = small_step();
  step.storage_bytes[0] = Bytes(256);
  step.storage_bytes[1] = Bytes(257);
  const ResidencyProblem problem = make_problem(step, simple_rates(), {});
  CHECK(item(problem, "x").bytes == Bytes(256));
  CHECK(item(problem, "x").padding == Bytes(0));
  CHECK(item(problem, "w").bytes == Bytes(512));
  CHECK(item(problem, "w").padding == Bytes(255));
  CHECK(item(problem, "w").h2d_seconds == doctest::Approx(1 + 25.7));
  CHECK(problem.operations[0].engines[1].workspace == Bytes(256));
}

TEST_CASE("make_problem: what wraps, and what the host has at the start") {
  const ResidencyProblem problem = make_problem(small_step(), simple_rates(), {});
  const auto life = [&](const char* name) {
    const Item& i = item(problem, name);
    return std::string(i.wraps ? "wraps " : "") + (i.host_at_start ? "host" : "");
  };
  CHECK(life("x") == "host");
  CHECK(life("w") == "wraps ");
  CHECK(life("m") == "wraps ");
  CHECK(life("frozen") == "wraps host");
  CHECK(life("y") == "");
}

TEST_CASE("make_problem: what carries over is wanted by the kernel that overwrites it") {
  SizedStep step = small_step();
  StepGraph graph = *step.graph;
  std::erase_if(graph.nodes[3].reads,
                [](const TensorView& read) { return read.storage == StorageId{5}; });
  step.graph = std::make_shared<const StepGraph>(graph);
  const ResidencyProblem problem = make_problem(step, simple_rates(), {});
  CHECK(touches_of(item(problem, "m")) == "3rw ");
  graph.storages[5].carries_over = false;
  step.graph = std::make_shared<const StepGraph>(std::move(graph));
  const ResidencyProblem made_anew = make_problem(step, simple_rates(), {});
  CHECK(touches_of(item(made_anew, "m")) == "3w ");
  CHECK_FALSE(item(made_anew, "m").wraps);
}

TEST_CASE("make_problem: times, engines and pins") {
  const ResidencyProblem problem = make_problem(small_step(), simple_rates(), {});
  const Operation& forward = problem.operations[0];
  REQUIRE(forward.engines.size() == 2);
  CHECK(forward.engines[0].workspace == Bytes(512));
  CHECK(forward.engines[0].seconds == doctest::Approx(1));
  CHECK(forward.engines[1].seconds == doctest::Approx(1));
  CHECK(forward.cpu_seconds == doctest::Approx(10));
  CHECK(problem.operations[1].engines.size() == 1);
  CHECK(item(problem, "x").h2d_seconds == doctest::Approx(2));
  CHECK(item(problem, "x").d2h_seconds == doctest::Approx(3));
  CHECK(problem.operations[2].pin == Pin::gpu);
  CHECK(problem.operations[3].pin == Pin::free);
  const auto pins = [](const ProblemOptions& options) {
    std::vector<Pin> result;
    for (const Operation& o : make_problem(small_step(), simple_rates(), options).operations) {
      result.push_back(o.pin);
    }
    return result;
  };
  CHECK(pins({.all_on_gpu = true}) == std::vector<Pin>(4, Pin::gpu));
  CHECK(pins({.compute_on_gpu = false}) == std::vector<Pin>(4, Pin::free));
}

}  // namespace stowage
