// The whole of validate_plan on real descriptions: the description is lowered again, a tampered one
// is found out, and nothing that a plan may hold makes it crash or hang.
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
  CHECK(validation.checks.size() == 23);
  return found;
}

TEST_CASE("a plan with everything resident passes every check") {
  TwoEngines source(1000_B);
  const Plan plan = resident_plan(small_network, 4, source);
  CHECK(outcome(plan, source).first == "");
  CHECK(plan.nodes.size() > 15);
}

TEST_CASE("a tampered description") {
  TwoEngines source(1000_B);
  const Plan made = resident_plan(small_network, 4, source);
  Plan plan = made;
  plan.inputs.model_text += "# harmless\n";
  Outcome found = outcome(plan, source);
  CHECK(found.first == "description: its hash is " + hash_text(plan.inputs.model_text) + ", not " +
                           made.inputs.model_hash + " as the plan says");
  CHECK(found.failed == found.unchecked + 1);
  CHECK(found.unchecked == 21);

  plan = made;  // with a hash to match it
  plan.inputs.model_text.replace(plan.inputs.model_text.find("channels: 4"), 11, "channels: 6");
  plan.inputs.model_hash = hash_text(plan.inputs.model_text);
  found = outcome(plan, source);
  CHECK(found.first.substr(0, found.first.find(';')) ==
        "storages: storage 0 is 'conv1.weight' (parameter, 432 bytes) in the plan, 'conv1.weight' "
        "(parameter, 648 bytes) by the description");
  CHECK(found.unchecked == 18);

  plan = made;
  plan.inputs.model_text.replace(plan.inputs.model_text.find("  - relu\n"), 9, "");
  plan.inputs.model_hash = hash_text(plan.inputs.model_text);
  CHECK(outcome(plan, source).first.starts_with("nodes: the plan has "));

  plan = made;
  plan.inputs.model_text.replace(plan.inputs.model_text.find("conv2d"), 6, "conv9d");
  plan.inputs.model_hash = hash_text(plan.inputs.model_text);
  CHECK(outcome(plan, source).first ==
        "description: it does not load: unknown operator or block 'conv9d'");
}

TEST_CASE("other settings than the plan's") {
  TwoEngines source(1000_B);
  const Plan made = resident_plan(small_network, 4, source);
  Plan plan = made;
  plan.inputs.batch = 5;
  CHECK(outcome(plan, source).first.starts_with("storages: "));
  plan = made;
  plan.inputs.lowering.micro_batches = 3;
  CHECK(outcome(plan, source).first == "description: a batch of 4 is not 3 equal micro-batches");
  plan = made;
  plan.inputs.lowering.micro_batches = 2;
  CHECK(outcome(plan, source).first.starts_with("nodes: the plan has "));
  plan = made;
  plan.inputs.lowering.optimizer.name = "sgd";
  CHECK(outcome(plan, source).first.starts_with("storages: the plan has "));
  plan = made;
  plan.inputs.batch = plan.inputs.lowering.micro_batches = 1 << 30;
  CHECK(outcome(plan, source).first ==
        fmt::format("description: 1073741824 micro-batches of 7 operators are no step of {} nodes",
                    made.nodes.size()));
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
    switch (pick(10)) {
      case 0:
        return residence(one_of(plan.gpu));
      case 1:
        return residence(one_of(plan.host));
      case 2:
        return transfer(one_of(plan.transfers));
      case 3:
        return node(one_of(plan.nodes));
      case 4:
        return storage(one_of(plan.storages));
      case 5:
        return totals(plan.totals);
      case 6:
        return inputs(plan.inputs);
      case 7:
        return lists(plan);
      case 8:
        return text(plan.inputs);
      default:
        return residence(one_of(plan.gpu));
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
        t.direction = static_cast<Direction>(pick(4));
    }
  }
  void node(PlannedNode& n) {
    switch (pick(5)) {
      case 0:
        n.name += "?";
        break;
      case 1:
        n.device = static_cast<Device>(pick(4));
        break;
      case 2:
        n.engine += "?";
        break;
      case 3:
        n.workspace = Bytes(integer());
        break;
      default:
        n.workspace_offset = Bytes(integer());
    }
  }
  void storage(PlannedStorage& s) {
    switch (pick(3)) {
      case 0:
        s.name += "?";
        break;
      case 1:
        s.storage_class = static_cast<StorageClass>(pick(20) - 5);
        break;
      default:
        s.bytes = Bytes(integer());
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
  void inputs(PlanInputs& in) {
    double* const rates[] = {&in.rates.gpu_flops,     &in.rates.gpu_launch,
                             &in.rates.h2d_bandwidth, &in.rates.cpu_bandwidth,
                             &in.rates.link_latency,  &in.lowering.optimizer.momentum};
    switch (pick(8)) {
      case 0:
        in.batch = integer();
        break;
      case 1:
        in.lowering.micro_batches = static_cast<int>(integer());
        break;
      case 2:
        in.lowering.kernels = static_cast<KernelSet>(pick(5) - 1);
        break;
      case 3:
        in.lowering.mode = static_cast<Mode>(pick(5) - 1);
        break;
      case 4:
        in.available = Bytes(integer());
        break;
      case 5:
        in.budget = Bytes(integer());
        break;
      case 6:
        in.model_options.seq = integer();
        break;
      default:
        *rates[pick(std::size(rates))] = real();
    }
  }
  void lists(Plan& plan) {
    switch (pick(7)) {
      case 0:
        plan.nodes.resize(plan.nodes.size() / 2);
        break;
      case 1:
        plan.storages.resize(plan.storages.size() / 2);
        break;
      case 2:
        plan.gpu.push_back(one_of(plan.gpu));
        break;
      case 3:
        plan.transfers.push_back(one_of(plan.transfers));
        break;
      case 4:
        plan.host.clear();
        break;
      case 5:
        plan.nodes.clear();
        break;
      default:
        plan.gpu.clear();
    }
  }
  void text(PlanInputs& in) {
    if (in.model_text.empty()) return;
    in.model_text[static_cast<std::size_t>(pick(static_cast<std::int64_t>(in.model_text.size())))] =
        static_cast<char>(pick(128));
    in.model_hash = hash_text(in.model_text);
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
    REQUIRE(validation.checks.size() == 23);
    if (!validation.passed()) ++caught;
  }
  MESSAGE(plans << " plans with one to four fields overwritten: " << caught << " refused");
  CHECK(caught > plans * 8 / 10);
}

}  // namespace
}  // namespace stowage
