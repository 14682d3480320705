// The whole of validate_plan on a real step, the comparison with the description in a plan, and
// that nothing that a plan may hold makes the validator crash or hang.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "planner/validate/validate_plan.hpp"
#include "tests/support/resident_plan.hpp"

namespace stowage {
namespace {

constexpr const char* small_network = R"(model: small
inputs:
  image: {shape: [batch, 3, 8, 8]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, from: image, channels: 4, kernel: 3, padding: 1}
  - batch_norm: {name: norm1}
  - relu
  - conv2d: {name: conv2, channels: 4, kernel: 3}
  - flatten
  - linear: {name: fc, features: 5}
loss:
  cross_entropy: {from: [fc, label]}
train: {optimizer: adam}
)";

/// "name: detail" of the first failed check, and how many others could not be made after it.
struct Outcome {
  std::string first;
  int unchecked = 0;
  int failed = 0;
};
Outcome outcome(const Plan& plan, WorkspaceSource& source) {
  Outcome found;
  const PlanValidation validation = validate_plan(plan, source);
  for (const Check& check : validation.checks) {
    if (check.passed) continue;
    ++found.failed;
    if (check.detail.starts_with("not checked: ")) ++found.unchecked;
    if (found.first.empty()) found.first = check.name + ": " + check.detail;
  }
  CHECK(validation.passed() == (found.failed == 0));
  CHECK(validation.checks.size() == 31);
  return found;
}

TEST_CASE("a plan with everything resident passes every check") {
  TwoEngines source(1000_B);
  const Plan plan = resident_plan(small_network, 4, source);
  CHECK(outcome(plan, source).first == "");
  CHECK(plan.nodes.size() > 15);
}

TEST_CASE("the description in a plan is compared only when asked") {
  TwoEngines source(1000_B);
  const Plan made = resident_plan(small_network, 4, source);
  CHECK(compare_with_source(made).detail ==
        "'test.yaml', hash " + made.inputs.model_hash + ", lowers to the plan's step");
  Plan plan = made;
  plan.inputs.model_text = "nonsense";
  CHECK(outcome(plan, source).first == "description hash: the description's hash is " +
                                           hash_text("nonsense") + ", not " +
                                           made.inputs.model_hash + " as the plan says");
  plan.inputs.model_hash = hash_text("nonsense");
  CHECK(outcome(plan, source).first == "");
  CHECK(!compare_with_source(plan).passed);

  const auto described = [&](const std::string& what, const std::string& by) {
    Plan other = made;
    std::string& text = other.inputs.model_text;
    text.replace(text.find(what), what.size(), by);
    other.inputs.model_hash = hash_text(text);
    const Check check = compare_with_source(other);
    CHECK(!check.passed);
    return check.detail;
  };
  const std::string sizes = described("channels: 4", "channels: 6");
  CHECK(sizes.substr(0, sizes.find(';')) ==
        "storage 0 is 'conv1.weight' (parameter, 432 bytes) in the plan, 'conv1.weight' "
        "(parameter, 648 bytes) by the description");
  CHECK(described("  - relu\n", "").starts_with("the plan has "));
  CHECK(described("conv2d", "conv9d") ==
        "the description does not load: unknown operator or block 'conv9d'");
  CHECK(described("{name: norm1}", "{name: norm1, eps: 0.25}") ==
        "names and sizes are the same, but arguments or attributes are not");

  plan = made;
  plan.inputs.model_text.clear();
  const Check absent = compare_with_source(plan);
  CHECK(absent.passed);
  CHECK(absent.name == "source not compared");
}

TEST_CASE("a description that asks for more work than its plan is long is not lowered") {
  TwoEngines source(1000_B);
  Plan plan = resident_plan(small_network, 4, source);
  auto graph = std::make_shared<StepGraph>(*plan.step.graph);
  graph->settings.micro_batches = 1 << 30;
  plan.step.graph = graph;
  CHECK(compare_with_source(plan).detail ==
        fmt::format("1073741824 micro-batches of 7 operators are no step of {} nodes",
                    plan.nodes.size()));
}

TEST_CASE("workspaces are asked of the source again") {
  TwoEngines source(1000_B), other(999_B);
  const Plan plan = resident_plan(small_network, 4, source);
  CHECK(outcome(plan, other)
            .first.starts_with("workspaces: 'conv1.forward' takes engine 'rule' with 1000 bytes, "
                               "which is none of its 2 "
                               "engines"));
}

// Hostile plans: any field may hold anything.
class Mutation {
 public:
  explicit Mutation(unsigned seed) : random_(seed) {}

  void operator()(Plan& plan) {
    switch (pick(8)) {
      case 0:
        return residence(one_of(plan.in(pinned_memory)));
      case 1:
        return transfer(one_of(plan.transfers));
      case 2:
        return node(one_of(plan.nodes));
      case 3:
        return machine(plan.machine);
      case 4:
        return totals(plan.totals);
      case 5:
        return inputs(plan);
      case 6:
        return lists(plan);
      default:
        return residence(one_of(plan.in(gpu_memory)));
    }
  }

 private:
  std::int64_t pick(std::int64_t below) {
    return std::uniform_int_distribution<std::int64_t>(0, below - 1)(random_);
  }
  template <typename List>
  typename List::value_type& one_of(List& list) {
    if (list.empty()) list.emplace_back();
    return list[static_cast<std::size_t>(pick(static_cast<std::int64_t>(list.size())))];
  }
  std::int64_t integer() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t values[] = {-1,        0,
                                   1,         256,
                                   -256,      most,
                                   -most - 1, most / 2,
                                   most / 4,  std::int64_t{1} << 31,
                                   pick(100), pick(1 << 20)};
    return values[pick(std::size(values))];
  }
  std::int32_t step() { return static_cast<std::int32_t>(pick(3) == 0 ? integer() : pick(40)); }
  double real() {
    const double values[] = {-1, 0, 1e300, -1e300, NAN, INFINITY, 1e-300, 3};
    return values[pick(std::size(values))];
  }
  void residence(Residence& r) {
    switch (pick(4)) {
      case 0:
        r.storage.value = step();
        break;
      case 1:
        r.steps.begin = step();
        break;
      case 2:
        r.steps.end = step();
        break;
      default:
        r.offset = Bytes(integer());
    }
  }
  void transfer(Transfer& t) {
    switch (pick(4)) {
      case 0:
        t.storage.value = step();
        break;
      case 1:
        t.begin = step();
        break;
      case 2:
        t.end = step();
        break;
      default:
        t.link.value = step();
    }
  }
  void node(PlannedNode& n) {
    switch (pick(4)) {
      case 0:
        n.processor.value = step();
        break;
      case 1:
        n.engine += "?";
        break;
      case 2:
        n.workspace = Bytes(integer());
        break;
      default:
        n.workspace_offset = Bytes(integer());
    }
  }
  void machine(Machine& m) {
    switch (pick(7)) {
      case 0:
        one_of(m.processors).memory.value = step();
        break;
      case 1:
        one_of(m.processors).kind = static_cast<ProcessorKind>(pick(4));
        break;
      case 2:
        one_of(m.memories).kind = static_cast<MemoryKind>(pick(5));
        break;
      case 3:
        (pick(2) == 0 ? one_of(m.links).from : one_of(m.links).to).value = step();
        break;
      case 4:
        one_of(m.links).bandwidth = real();
        break;
      case 5:
        one_of(m.processors).kernels.emplace().formats[static_cast<std::size_t>(pick(5))] = real();
        break;
      default:
        one_of(m.processors).flops = real();
    }
  }
  void totals(PlanTotals& t) {
    Bytes* const sizes[] = {&t.gpu_peak, &t.arena, &t.arena_lower_bound, &t.host_peak,
                            &t.h2d,      &t.d2h,   &t.pcie_lower_bound};
    double* const times[] = {&t.cost_seconds, &t.cost_lower_bound_seconds, &t.all_gpu_cost_seconds,
                             &t.step_seconds, &t.all_gpu_step_seconds};
    if (pick(2) == 0) {
      *sizes[pick(std::size(sizes))] = Bytes(integer());
    } else {
      *times[pick(std::size(times))] = real();
    }
  }
  void inputs(Plan& plan) {
    switch (pick(5)) {
      case 0:
        plan.step.batch = integer();
        break;
      case 1:
        plan.inputs.available = Bytes(integer());
        break;
      case 2:
        plan.inputs.budget = Bytes(integer());
        break;
      case 3:
        one_of(plan.step.storage_bytes) = Bytes(integer());
        break;
      default:
        plan.pinned = static_cast<Pinned>(pick(6));
    }
  }
  void lists(Plan& plan) {
    switch (pick(8)) {
      case 0:
        plan.nodes.resize(plan.nodes.size() / 2);
        break;
      case 1:
        plan.step.storage_bytes.resize(plan.step.storage_bytes.size() / 2);
        break;
      case 2:
        plan.in(gpu_memory).push_back(one_of(plan.in(gpu_memory)));
        break;
      case 3:
        plan.transfers.push_back(one_of(plan.transfers));
        break;
      case 4:
        plan.in(pinned_memory).clear();
        break;
      case 5:
        plan.nodes.clear();
        break;
      case 6:
        plan.machine.memories.pop_back();
        break;
      default:
        plan.in(gpu_memory).clear();
    }
  }

  std::mt19937 random_;
};

TEST_CASE("whatever a plan holds, the validator answers") {
  TwoEngines source(1000_B);
  const Plan made = resident_plan(small_network, 4, source);
  int caught = 0;
  constexpr int plans = 2000;
  for (unsigned seed = 0; seed < plans; ++seed) {
    CAPTURE(seed);
    Plan plan = made;
    Mutation mutate(seed);
    for (unsigned i = 0; i <= seed % 4; ++i) mutate(plan);
    const PlanValidation validation = validate_plan(plan, source);
    REQUIRE(validation.checks.size() == 31);
    if (!validation.passed()) ++caught;
  }
  MESSAGE(plans << " plans with one to four fields overwritten: " << caught << " refused");
  CHECK(caught > plans * 8 / 10);
}

}  // namespace
}  // namespace stowage
