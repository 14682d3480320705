// The planner's own plans, of small models at several budgets: every one passes, and every change
// to one residence, copy or node that leaves no plan is found by the walk or the arenas, not merely
// by a figure that no longer adds up.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <tuple>

#include "estimator/card/card.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/validate_plan.hpp"
#include "tests/support/resident_plan.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {
namespace {

constexpr const char* small_transformer = R"(model: small-transformer
inputs:
  tokens: {shape: [batch, 6], dtype: int64}
  label: {shape: [batch, 16]}
blocks:
  heads:
    layers:
      - linear: {features: 16}
      - reshape: {shape: [batch, 6, 2, 8]}
      - transpose: {axes: [0, 2, 1, 3]}
layers:
  - embedding: {name: words, from: tokens, count: 40, features: 16}
  - layer_norm: {name: norm1}
  - heads: {name: q, from: norm1}
  - heads: {name: k, from: norm1}
  - heads: {name: v, from: norm1}
  - scaled_dot_product_attention: {name: attention, from: [q, k, v], causal: true}
  - transpose: {axes: [0, 2, 1, 3]}
  - reshape: {name: joined, shape: [batch, 6, 16]}
  - dropout: {name: dropped, p: 0.1}
  - add: {name: sum1, from: [dropped, words]}
  - layer_norm: {name: norm2}
  - linear: {name: up, features: 64}
  - gelu: {name: act}
  - linear: {name: down, features: 16}
  - add: {name: sum2, from: [down, sum1]}
  - flatten
  - linear: {name: head, features: 16}
loss:
  mse: {from: [head, label]}
train: {optimizer: adamw}
)";

std::string shipped(const std::string& name) {
  std::ifstream file(testing::source_path("/configs/models/") + name + ".yaml");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Any plan will do, so the solver need not look long.
const ProposalOptions limits{.work = {60'000'000}, .target_gap = 0.05};

struct Model {
  std::string text;
  std::int64_t batch = 0;
};

std::vector<Model> models() {
  return {{shipped("mlp"), 512}, {shipped("mnist-cnn"), 4}, {small_transformer, 2}};
}

/// All proposals within a share of what everything on the GPU takes; none below the floor.
std::vector<Plan> plans_of(const Model& model, std::int64_t percent) {
  TwoEngines source(300'000_B);
  PlanRequest request;
  request.description = std::make_shared<const SourceText>(SourceText{"test.yaml", model.text});
  const auto loaded = load_model(request.description);
  REQUIRE_MESSAGE(loaded, render(loaded.error()));
  const ChosenStep chosen{.lowering = {.optimizer = loaded->optimizer}};
  request.document = make_document(*loaded, chosen, Runtime::stowage, {}, step_alone).value();
  request.batch = WholeBatch(model.batch);
  request.card = generic_card(8_GiB);
  request.host = {.name = "test",
                  .memory = 16_GiB,
                  .cpu_flops = 1e11,
                  .memory_bandwidth = 2e10,
                  .kernel_latency = 2e-6,
                  .h2d_bandwidth = 12e9,
                  .d2h_bandwidth = 12e9,
                  .link_latency = 1e-5};
  const ResidencyProblem problem =
      make_problem(size_step(request.document.graph, request.batch.samples, source).value(),
                   Rates{}, {.all_on_gpu = true});
  const Bytes everything = evaluate(problem, all_gpu_placement(problem)).peak;
  request.budget = Bytes(everything.count() / 100 * percent);
  request.levers.operators = false;  // what is done to plans below needs the GPU
  auto plans = make_plans(request, source, limits);
  return plans ? *std::move(plans) : std::vector<Plan>{};
}

/// Made once, for both tests.
const std::vector<Plan>& all_plans() {
  static const std::vector<Plan> plans = [] {
    std::vector<Plan> made;
    for (const Model& model : models()) {
      for (const int percent : {110, 60, 40}) {
        for (Plan& plan : plans_of(model, percent)) made.push_back(std::move(plan));
      }
    }
    return made;
  }();
  return plans;
}

std::string about(const Plan& plan) {
  return fmt::format("{} of {} within {}, {} nodes", plan.name, plan.inputs.model_name,
                     format_bytes(plan.inputs.budget.bytes), plan.nodes.size());
}

TEST_CASE("every plan that the planner makes passes every check") {
  std::int64_t copies = 0, on_cpu = 0;
  for (const Plan& plan : all_plans()) {
    CAPTURE(about(plan));
    TwoEngines source(300'000_B);
    std::string failed;
    for (const Check& check : validate_plan(plan, source).checks) {
      if (!check.passed) failed += check.name + ": " + check.detail + "\n";
    }
    CHECK(failed == "");
    CHECK(compare_with_source(plan).detail.ends_with("lowers to the plan's step"));
    copies += static_cast<std::int64_t>(plan.transfers.size());
    on_cpu += std::count_if(plan.nodes.begin(), plan.nodes.end(), [](const PlannedNode& node) {
      return node.processor == cpu_processor;
    });
  }
  MESSAGE(all_plans().size() << " plans with " << copies << " copies and " << on_cpu
                             << " nodes on the CPU");
  CHECK(all_plans().size() > 15);
  CHECK(copies > 200);
  CHECK(on_cpu > 20);
}

/// What one change did to a plan.
struct Tally {
  int made = 0;
  int caught = 0;  // by a check that is not of figures
};

bool of_figures(const std::string& name) {
  for (const char* figures : {"GPU peak", "arena bound", "budget", "transferred bytes",
                              "transfer bound", "cost", "cost bound", "step time", "step bound"}) {
    if (name == figures) return true;
  }
  return false;
}

bool is_caught(const Plan& plan) {
  const std::vector<Check> checks = check_plan(plan);
  return std::any_of(checks.begin(), checks.end(),
                     [](const Check& check) { return !check.passed && !of_figures(check.name); });
}

void put_in_order(Plan& plan) {
  const auto earlier = [](const Residence& a, const Residence& b) {
    return std::tuple(a.steps.begin, a.storage) < std::tuple(b.steps.begin, b.storage);
  };
  std::sort(plan.in(gpu_memory).begin(), plan.in(gpu_memory).end(), earlier);
  std::sort(plan.in(pinned_memory).begin(), plan.in(pinned_memory).end(), earlier);
  std::stable_sort(plan.transfers.begin(), plan.transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.begin < b.begin; });
}

using Change = bool (*)(Plan&, std::mt19937&);  // false: there was nothing to change

template <typename List>
auto& any_of_list(List& list, std::mt19937& random) {
  return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
}

bool drop_copy(Plan& plan, std::mt19937& random) {
  if (plan.transfers.empty()) return false;
  const auto& chosen = any_of_list(plan.transfers, random);
  plan.transfers.erase(plan.transfers.begin() + (&chosen - plan.transfers.data()));
  return true;
}
bool turn_copy(Plan& plan, std::mt19937& random) {
  if (plan.transfers.empty()) return false;
  Transfer& chosen = any_of_list(plan.transfers, random);
  chosen.link = chosen.link == upload_link ? download_link : upload_link;
  return true;
}
bool begin_upload_elsewhere(Plan& plan, std::mt19937& random, std::int32_t by) {
  if (plan.transfers.empty()) return false;
  Transfer& chosen = any_of_list(plan.transfers, random);
  if (chosen.link != upload_link || chosen.begin + by < 0) return false;
  chosen.begin += by;
  return true;
}
bool upload_later(Plan& plan, std::mt19937& random) {
  return begin_upload_elsewhere(plan, random, 1);
}
bool upload_earlier(Plan& plan, std::mt19937& random) {
  return begin_upload_elsewhere(plan, random, -1);
}
bool end_copy_later(Plan& plan, std::mt19937& random) {
  if (plan.transfers.empty()) return false;
  Transfer& chosen = any_of_list(plan.transfers, random);
  if (chosen.end == static_cast<std::int32_t>(plan.nodes.size())) return false;
  ++chosen.end;
  return true;
}
bool begin_download_earlier(Plan& plan, std::mt19937& random) {
  if (plan.transfers.empty()) return false;
  Transfer& chosen = any_of_list(plan.transfers, random);
  if (chosen.link != download_link || chosen.begin == 0) return false;
  --chosen.begin;
  return true;
}
bool drop_gpu_residence(Plan& plan, std::mt19937& random) {
  const auto& chosen = any_of_list(plan.in(gpu_memory), random);
  plan.in(gpu_memory).erase(plan.in(gpu_memory).begin() + (&chosen - plan.in(gpu_memory).data()));
  return true;
}
bool drop_host_residence(Plan& plan, std::mt19937& random) {
  if (plan.in(pinned_memory).empty()) return false;
  const auto& chosen = any_of_list(plan.in(pinned_memory), random);
  plan.in(pinned_memory)
      .erase(plan.in(pinned_memory).begin() + (&chosen - plan.in(pinned_memory).data()));
  return true;
}
bool begin_residence_later(Plan& plan, std::mt19937& random) {
  ++any_of_list(plan.in(gpu_memory), random).steps.begin;
  return true;
}
bool end_residence_earlier(Plan& plan, std::mt19937& random) {
  --any_of_list(plan.in(gpu_memory), random).steps.end;
  return true;
}
bool end_host_residence_earlier(Plan& plan, std::mt19937& random) {
  if (plan.in(pinned_memory).empty()) return false;
  --any_of_list(plan.in(pinned_memory), random).steps.end;
  return true;
}
bool lie_over(const Plan& plan, std::vector<Residence>& residences, std::mt19937& random) {
  if (residences.empty()) return false;
  Residence& a = any_of_list(residences, random);
  const Residence& b = any_of_list(residences, random);
  if (&a == &b || !a.steps.overlaps(b.steps)) return false;
  if (plan.bytes(a.storage) == 0_B) return false;
  if (plan.bytes(b.storage) == 0_B) return false;
  a.offset = b.offset;
  return true;
}
bool lie_over_on_gpu(Plan& plan, std::mt19937& random) {
  return lie_over(plan, plan.in(gpu_memory), random);
}
bool lie_over_on_host(Plan& plan, std::mt19937& random) {
  return lie_over(plan, plan.in(pinned_memory), random);
}
bool move_node(Plan& plan, std::mt19937& random) {
  PlannedNode& node = any_of_list(plan.nodes, random);
  node.processor = node.processor == gpu_processor ? cpu_processor : gpu_processor;
  return true;
}
bool rename_residence(Plan& plan, std::mt19937& random) {
  Residence& chosen = any_of_list(plan.in(gpu_memory), random);
  const StorageId other = any_of_list(plan.in(gpu_memory), random).storage;
  if (other == chosen.storage) return false;
  chosen.storage = other;
  return true;
}

TEST_CASE("one change to a plan is caught wherever it leaves none") {
  const std::vector<std::tuple<const char*, Change, bool>> changes{
      {"copy dropped", drop_copy, true},
      {"copy turned round", turn_copy, true},
      {"upload begun later", upload_later, true},
      {"upload begun earlier", upload_earlier, true},
      {"copy ended later", end_copy_later, false},
      {"download begun earlier", begin_download_earlier, false},
      {"GPU residence dropped", drop_gpu_residence, true},
      {"host residence dropped", drop_host_residence, true},
      {"GPU residence begun later", begin_residence_later, true},
      {"GPU residence ended earlier", end_residence_earlier, false},
      {"host residence ended earlier", end_host_residence_earlier, false},
      {"GPU residence laid over another", lie_over_on_gpu, true},
      {"host residence laid over another", lie_over_on_host, true},
      {"node moved to the other side", move_node, true},
      {"residence given to another storage", rename_residence, true}};
  std::map<std::string, Tally> tallies;
  std::mt19937 random(20);
  for (const Plan& made : all_plans()) {
    for (const auto& [name, change, must] : changes) {
      for (int i = 0; i < 8; ++i) {
        Plan plan = made;
        if (!change(plan, random)) continue;
        put_in_order(plan);
        const bool caught = is_caught(plan);
        ++tallies[name].made;
        if (caught) ++tallies[name].caught;
        if (caught || !must) continue;
        CAPTURE(about(made));
        FAIL_CHECK(name << " was not caught");
      }
    }
  }
  for (const auto& [name, tally] : tallies) {
    MESSAGE(name << ": " << tally.caught << " of " << tally.made << " caught");
    CHECK(tally.made > 10);
  }
}

}  // namespace
}  // namespace stowage
