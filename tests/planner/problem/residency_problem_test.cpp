#include "planner/problem/residency_problem.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace stowage {
namespace {

constexpr bool yes = true;
constexpr bool no = false;

Operation operation(const char* name, Pin pin = Pin::free) {
  return {.name = name, .engines = {{1.0, Bytes()}}, .cpu_seconds = 10.0, .pin = pin};
}

// Transfers cost 100 s down and 1000 s up, so that a cost reads as its parts: up, down, CPU, GPU.
Item item(std::vector<Touch> touches) {
  return {.name = "x",
          .bytes = Bytes(8),
          .touches = std::move(touches),
          .h2d_seconds = 1000,
          .d2h_seconds = 100};
}

ResidencyProblem problem_of(Item x, int operations) {
  ResidencyProblem problem;
  for (int i = 0; i < operations; ++i) problem.operations.push_back(operation("op"));
  problem.items.push_back(std::move(x));
  return problem;
}

Evaluation judge(const ResidencyProblem& problem, std::vector<Device> device,
                 std::vector<bool> on_gpu, std::vector<bool> resident) {
  const std::vector<std::int32_t> engine(device.size(), 0);
  return evaluate(problem, {std::move(device), engine, {std::move(on_gpu)}, {std::move(resident)}});
}

constexpr Device gpu = Device::gpu;
constexpr Device cpu = Device::cpu;

}  // namespace

TEST_CASE("evaluate: a version written on the GPU goes down once, however many need it") {
  const ResidencyProblem problem =
      problem_of(item({{0, no, yes}, {1, yes, no}, {2, yes, no}, {3, yes, no}}), 4);
  const Evaluation kept =
      judge(problem, {gpu, gpu, gpu, gpu}, {yes, yes, yes, yes}, {yes, yes, yes});
  CHECK(kept.cost_seconds == 4);
  CHECK(kept.memory == std::vector<Bytes>(4, Bytes(8)));
  const Evaluation dropped_twice =
      judge(problem, {gpu, gpu, gpu, gpu}, {yes, yes, yes, yes}, {no, yes, no});
  CHECK(dropped_twice.cost_seconds == 2104);
  CHECK(dropped_twice.h2d_bytes == Bytes(16));
  CHECK(dropped_twice.d2h_bytes == Bytes(8));
  const Evaluation read_on_both =
      judge(problem, {gpu, cpu, gpu, cpu}, {yes, yes, yes, no}, {yes, yes, no});
  CHECK(read_on_both.cost_seconds == 122);
  CHECK(read_on_both.memory == std::vector<Bytes>{Bytes(8), Bytes(8), Bytes(8), Bytes(0)});
}

TEST_CASE("evaluate: what the CPU writes is on the host at no cost") {
  const ResidencyProblem problem = problem_of(item({{0, no, yes}, {2, yes, no}}), 3);
  const Evaluation fetched = judge(problem, {cpu, cpu, gpu}, {no, yes}, {no});
  CHECK(fetched.cost_seconds == 1021);
  CHECK(fetched.memory == std::vector<Bytes>{Bytes(0), Bytes(0), Bytes(8)});
  CHECK(judge(problem, {cpu, cpu, cpu}, {no, no}, {no}).cost_seconds == 30);
}

TEST_CASE("evaluate: each write starts a version with a download of its own") {
  const ResidencyProblem problem = problem_of(item({{0, no, yes}, {1, yes, yes}, {2, yes, no}}), 3);
  const Evaluation evaluation = judge(problem, {gpu, gpu, gpu}, {yes, yes, yes}, {no, no});
  CHECK(evaluation.cost_seconds == 2203);
  CHECK(evaluation.peak == Bytes(8));
}

TEST_CASE(
    "evaluate: a read that overwrites what is resident needs no download of the new version") {
  const ResidencyProblem problem = problem_of(item({{0, no, yes}, {1, yes, yes}}), 2);
  CHECK(judge(problem, {gpu, cpu}, {yes, no}, {no}).cost_seconds == 111);
}

TEST_CASE("evaluate: an item that wraps is read first in the version written last") {
  Item state = item({{1, yes, yes}});
  state.wraps = true;
  const ResidencyProblem problem = problem_of(state, 3);
  const Evaluation kept = judge(problem, {gpu, gpu, gpu}, {yes}, {yes});
  CHECK(kept.cost_seconds == 3);
  CHECK(kept.memory == std::vector<Bytes>(3, Bytes(8)));
  const Evaluation swapped = judge(problem, {gpu, gpu, gpu}, {yes}, {no});
  CHECK(swapped.cost_seconds == 1103);
  CHECK(swapped.memory == std::vector<Bytes>{Bytes(0), Bytes(8), Bytes(0)});
  CHECK(judge(problem, {gpu, cpu, gpu}, {no}, {no}).cost_seconds == 12);
}

TEST_CASE("evaluate: a parameter that the CPU updates goes up once a step") {
  Item parameter = item({{0, yes, no}, {1, yes, no}, {2, yes, yes}});
  parameter.wraps = true;
  const ResidencyProblem problem = problem_of(parameter, 3);
  CHECK(judge(problem, {gpu, gpu, cpu}, {yes, yes, no}, {yes, no, no}).cost_seconds == 1012);
  CHECK(judge(problem, {gpu, gpu, gpu}, {yes, yes, yes}, {yes, yes, no}).cost_seconds == 1103);
}

TEST_CASE("evaluate: what is never written costs nothing to drop") {
  Item weight = item({{0, yes, no}, {2, yes, no}});
  weight.wraps = true;
  weight.host_at_start = true;
  const ResidencyProblem problem = problem_of(weight, 3);
  const Evaluation evaluation = judge(problem, {gpu, gpu, gpu}, {yes, yes}, {no, no});
  CHECK(evaluation.cost_seconds == 2003);
  CHECK(evaluation.d2h_bytes == Bytes(0));
}

TEST_CASE("evaluate: workspaces and temporaries count where the operation runs on the GPU") {
  ResidencyProblem problem = problem_of(item({{0, no, yes}, {1, yes, no}}), 2);
  problem.operations[0].engines = {{1.0, Bytes(100)}, {3.0, Bytes(10)}};
  problem.operations[1].temporaries = Bytes(50);
  const Placement placement{{gpu, cpu}, {1, 0}, {{yes, no}}, {{no}}};
  const Evaluation evaluation = evaluate(problem, placement);
  CHECK(evaluation.memory == std::vector<Bytes>{Bytes(18), Bytes(0)});
  CHECK(evaluation.cost_seconds == 113);
  CHECK(evaluation.peak == Bytes(18));
  CHECK(evaluation.peak_step == 0);
}

TEST_CASE("evaluate: names what is inconsistent") {
  ResidencyProblem problem = problem_of(item({{0, no, yes}, {1, yes, no}}), 2);
  CHECK(judge(problem, {gpu, gpu}, {yes, no}, {no}).inconsistency ==
        "'op' runs on the GPU without 'x'");
  CHECK(judge(problem, {cpu, gpu}, {yes, yes}, {yes}).inconsistency ==
        "'op' writes 'x' on the CPU and it is said to be on the GPU");
  CHECK(judge(problem, {gpu, cpu}, {yes, no}, {yes}).inconsistency ==
        "'x' is resident after step 0 but not at both ends of the gap");
  CHECK(judge(problem, {gpu, gpu}, {yes, yes}, {}).inconsistency ==
        "the placement of 'x' has the wrong size");
  CHECK(evaluate(problem, {}).inconsistency == "the placement is of another problem");
  problem.operations[0].pin = Pin::cpu;
  CHECK(judge(problem, {gpu, gpu}, {yes, yes}, {yes}).inconsistency == "'op' is pinned to the CPU");
  const Placement engine{{cpu, gpu}, {0, 1}, {{no, yes}}, {{no}}};
  CHECK(evaluate(problem, engine).inconsistency == "'op' has no engine 1");
}

TEST_CASE("ill_formed: says what is wrong with a problem") {
  CHECK(ill_formed(problem_of(item({{0, no, yes}}), 1)) == "");
  CHECK(ill_formed(problem_of(item({{0, yes, no}}), 1)) ==
        "'x' is read at step 0 before anything has written it");
  CHECK(ill_formed(problem_of(item({}), 1)) == "nothing touches 'x'");
  CHECK(ill_formed(problem_of(item({{1, no, yes}, {0, yes, no}}), 2)) ==
        "'x' has touches out of order");
  Item weight = item({{0, yes, no}});
  weight.wraps = true;
  CHECK(ill_formed(problem_of(weight, 1)) ==
        "'x' wraps and is never written, so host_at_start must be true");
  ResidencyProblem problem = problem_of(item({{0, no, yes}}), 1);
  problem.operations[0].engines.clear();
  CHECK(ill_formed(problem) == "'op' has no engine");
}

TEST_CASE("memory floor: the operation pinned to the GPU that needs most by itself") {
  ResidencyProblem problem = problem_of(item({{0, no, yes}, {1, yes, no}}), 2);
  problem.operations[1].pin = Pin::gpu;
  problem.operations[1].engines = {{1.0, Bytes(100)}, {3.0, Bytes(10)}};
  problem.operations[1].temporaries = Bytes(5);
  CHECK(memory_floor(problem).bytes == Bytes(23));
  CHECK(memory_floor(problem).step == 1);
}

}  // namespace stowage
