// Bounds proved again from plans' certificates: those of the planner pass, and a claim above what a
// certificate proves is found, with the leaf at which it fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <variant>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/validate/checks.hpp"
#include "tests/support/kept_plans.hpp"

namespace stowage::test {
namespace {

constexpr const char* three_convolutions = R"(model: three convolutions
inputs:
  image: {shape: [batch, 16, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu1}
  - conv2d: {name: conv2, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu2}
  - conv2d: {name: conv3, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu3}
  - max_pool2d: {name: pool, kernel: 2}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

constexpr double slow_link = 5e8;  // bytes a second

PlanRequest request_within(Bytes budget, const Levers& levers, double link) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"small.yaml", three_convolutions});
  const auto model = load_model(source);
  if (!model) FAIL(render(model.error()));
  const ChosenStep step{.lowering = {.optimizer = {.name = "adam"}}};
  PlanRequest request{
      .document = make_document(*model, step, Runtime::stowage, {}, step_alone).value(),
      .description = source,
      .batch = WholeBatch(16),
      .card = generic_card(64_MiB),
      .host = {.name = "test", .pinned_limit = 1_GiB},
      .budget = budget,
      .levers = levers,
      .stowage_version = "test"};
  request.host.cpu_flops = 1e11;
  request.host.memory_bandwidth = 2e10;
  request.host.h2d_bandwidth = request.host.d2h_bandwidth = link;
  return request;
}

std::vector<Plan> plans_within(Bytes budget, const Levers& levers, double link = 12e9) {
  const auto workspaces = rule_workspace_source(8.6);
  auto plans = make_plans(request_within(budget, levers, link), *workspaces,
                          {.work = {60'000'000}, .target_gap = 0});
  return plans ? *std::move(plans) : std::vector<Plan>{};
}

/// The failed checks of the certificate, one a line.
std::string failed_proofs(const Plan& plan) {
  std::string failed;
  for (const Check& check : check_certificate(plan)) {
    if (!check.passed) failed += check.name + ": " + check.detail + "\n";
  }
  return failed;
}

/// Made once: the step as it is, of fewest bytes and rewritten.
const std::vector<Plan>& some_plans() {
  static const std::vector<Plan> plans = plans_within(Bytes(2'600'000), {.operators = false});
  return plans;
}

const Plan& plan_named(const std::string& name) {
  const auto found = std::ranges::find(some_plans(), name, &Plan::name);
  REQUIRE(found != some_plans().end());
  return *found;
}

Plan changed(const Plan& plan, const std::function<void(Certificate&)>& change) {
  Plan other = plan;
  change(*other.certificate);
  return other;
}

BranchLeaf& first_leaf(TreeProof& proof) {
  const auto leaf = std::ranges::find_if(
      proof.tree, [](const BranchNode& node) { return node.leaf() != nullptr; });
  return std::get<BranchLeaf>(leaf->content);
}

}  // namespace

TEST_CASE("certificates of all kinds of plans prove their bounds, read back from a file too") {
  int proofs = 0, lanes = 0, splits = 0, priced = 0;
  const auto look_at = [&](const Plan& plan) {
    CAPTURE(plan.name);
    CAPTURE(plan.inputs.budget.bytes.count());
    REQUIRE(plan.certificate.has_value());
    CHECK(failed_proofs(plan) == "");
    const std::string text = write_plan(plan);
    const auto read = read_plan(std::make_shared<const SourceText>(SourceText{"p", text}));
    REQUIRE(read.has_value());
    CHECK(read->certificate == plan.certificate);
    CHECK(write_plan(*read) == text);
    ++proofs;
    lanes += std::holds_alternative<LaneProof>(plan.certificate->step) ? 1 : 0;
    splits += std::holds_alternative<SplitProof>(plan.certificate->step) ? 1 : 0;
    TreeProof cost = *plan.certificate->cost;
    priced += first_leaf(cost).steps.empty() ? 0 : 1;
  };
  for (const Levers& levers :
       {Levers{}, Levers{.operators = false}, Levers{.operators = false, .optimizer = false},
        Levers{.activations = false}, Levers{.operators = false, .weights = false}}) {
    CAPTURE(to_string(levers));
    for (const Plan& plan : plans_within(Bytes(2'300'000), levers)) look_at(plan);
  }
  // Operations that may run on the CPU keep nothing. Even those that then run on the GPU drop what
  // a plan with compute pinned there would keep.
  for (const Bytes budget : {Bytes(2'600'000), 32_MiB}) {
    for (const Plan& plan : plans_within(budget, {.activations = false, .optimizer = false})) {
      look_at(plan);
    }
  }
  for (const Bytes budget : {Bytes(2'000'000), 32_MiB}) {
    for (const Plan& plan : plans_within(budget, {.operators = false}, slow_link)) look_at(plan);
  }
  MESSAGE(proofs << " plans, " << priced << " with prices, " << lanes << " bounds of lanes and "
                 << splits << " of two sides");
  CHECK(priced > 5);
  CHECK(lanes + splits > 10);
}

TEST_CASE("a bound that is raised is not proved, and it is said where") {
  for (const Plan& plan : some_plans()) {
    CAPTURE(plan.name);
    Plan raised = plan;
    raised.totals.cost_lower_bound_seconds *= 1.001;
    CHECK(failed_proofs(raised).starts_with("cost certificate: cost_lower_bound_seconds is "));
    CHECK(failed_proofs(raised).find("but leaf ") != std::string::npos);
    raised = plan;
    REQUIRE(raised.totals.step_lower_bound_seconds.has_value());
    *raised.totals.step_lower_bound_seconds *= 1.2;
    CHECK(failed_proofs(raised).starts_with("step certificate: step_lower_bound_seconds is "));
    raised = plan;
    raised.totals.pcie_lower_bound += 1_B;
    CHECK(failed_proofs(raised).starts_with("transfer certificate: "));
  }
}

TEST_CASE("prices, fixings and weights that are changed prove less") {
  const Plan& plan = plan_named("min-pcie");
  const auto halve_prices = [](TreeProof& proof) {
    for (BranchNode& node : proof.tree) {
      auto* leaf = std::get_if<BranchLeaf>(&node.content);
      if (leaf == nullptr) continue;
      for (MemoryPrice& p : leaf->steps) p.price *= 0.5;
      for (LimitPrice& p : leaf->limits) p.price *= 0.5;
    }
  };
  CHECK(failed_proofs(changed(plan, [&](Certificate& certificate) {
          halve_prices(*certificate.cost);
        })).starts_with("cost certificate: "));
  CHECK(failed_proofs(changed(plan, [&](Certificate& certificate) {
          halve_prices(*certificate.transfers);
        })).starts_with("transfer certificate: "));
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.cost->tree.pop_back();
        })) == "cost certificate: its branches do not cover every plan\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) { certificate.cost.reset(); })) ==
        "cost certificate: the certificate proves no bound on the cost\n");
  CHECK(failed_proofs(
            changed(plan, [](Certificate& certificate) { certificate.transfers.reset(); })) ==
        "transfer certificate: the certificate proves no bound on the bytes that are moved\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = std::monostate{};
        })) == "step certificate: the certificate proves no bound on the step\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = LaneProof{.gpu = 0.1, .cpu = 0.1};
        })).starts_with("step certificate: step_lower_bound_seconds is "));
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = LaneProof{.gpu = 2, .cpu = 2};
        })) == "step certificate: its lanes have no weights from 0 to 1\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = LaneProof{};
        })) == "step certificate: its lanes have no weights from 0 to 1\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = SplitProof{.node = 1'000'000};
        })) == "step certificate: node 1000000 need not run on the GPU\n");
  CHECK(failed_proofs(changed(plan, [](Certificate& certificate) {
          certificate.step = SplitProof{.scope = {.compute_on_gpu = true}, .downloads = 7};
        })) == "step certificate: its two sides and the CPU have no weights from 0 to 1\n");
}

TEST_CASE("a bound by what is away during a node is proved again") {
  Plan plan = plan_named("min-pcie");
  const double all_gpu = plan.totals.all_gpu_step_seconds;
  plan.totals.step_lower_bound_seconds = 0.4 * all_gpu;
  plan.certificate->step = SplitProof{{.compute_on_gpu = true}, 2, 0, 0};
  CHECK(failed_proofs(plan) == "");
  plan.certificate->step = SplitProof{{.compute_on_gpu = true}, 2, 0.25, 0.5};
  CHECK(failed_proofs(plan) == "");
  plan.totals.step_lower_bound_seconds = 2 * plan.totals.step_seconds;
  CHECK(failed_proofs(plan).find("but what is away during 'conv2.forward' (step 2) proves no more "
                                 "than ") != std::string::npos);
}

TEST_CASE("a bound of other plans than this one is none") {
  // Updates on the CPU: what keeps them on the GPU is bounded higher.
  const auto plans = plans_within(Bytes(2'000'000), {.operators = false});
  const auto updates_on_cpu = std::ranges::find_if(plans, [](const Plan& plan) {
    return std::ranges::any_of(
        plan.nodes, [](const PlannedNode& node) { return node.processor == cpu_processor; });
  });
  REQUIRE(updates_on_cpu != plans.end());
  const std::string failed = failed_proofs(changed(*updates_on_cpu, [](Certificate& certificate) {
    certificate.cost->scope.updates_on_gpu = true;
  }));
  CHECK(
      failed.starts_with("cost certificate: the bound is of plans with these pins that compute "
                         "and update on the GPU, but 'update."));
  Plan unpinned = plan_named("cheapest");
  unpinned.pinned = Pinned::nothing;
  CHECK(failed_proofs(unpinned).find("but the plan pins nothing to it") != std::string::npos);
  CHECK(failed_proofs(changed(plan_named("cheapest"), [](Certificate& certificate) {
          certificate.cost->scope.keep_activations = true;
          certificate.cost->scope.keep_state = true;
        })).find(" is not kept from ") != std::string::npos);
}

TEST_CASE("where nothing fits, nothing is proved") {
  Plan plan = plan_named("min-pcie");
  plan.inputs.budget = 1_KiB;
  const std::string failed = failed_proofs(plan);
  for (const char* name : {"cost", "transfer"}) {
    CHECK(failed.find(std::string(name) + " certificate: by its certificate no plan is within the "
                                          "budget, not even this one\n") != std::string::npos);
  }
}

TEST_CASE("whatever a certificate holds, it is read or refused, and checked") {
  const std::vector<KeptFile> kept = kept_plans();
  const auto certified = std::ranges::find_if(
      kept, [](const KeptFile& file) { return file.path == "plan-2/mlp-certificate.yaml"; });
  REQUIRE(certified != kept.end());
  const std::size_t begin = certified->text.find("\ncertificate: |\n") + 17;
  const auto length = static_cast<std::int64_t>(certified->text.find("\n---\n", begin) - begin);
  std::mt19937 random(12);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  constexpr std::string_view alphabet = "0123456789-,.e \n#leafgpround";
  int checked = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = certified->text;
    for (std::int64_t edits = 1 + below(3); edits > 0; --edits) {
      const auto at = begin + static_cast<std::size_t>(below(length - 40));
      const auto letter = alphabet[static_cast<std::size_t>(below(std::ssize(alphabet)))];
      switch (below(3)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, text.substr(begin + static_cast<std::size_t>(below(length - 40)), 20));
          break;
        default:
          text.erase(at, 1 + static_cast<std::size_t>(below(6)));
      }
    }
    const auto plan = read_plan(std::make_shared<const SourceText>(SourceText{"p", text}));
    if (!plan) {
      CHECK(!plan.error().empty());
      continue;
    }
    ++checked;
    CHECK(!check_certificate(*plan).empty());
  }
  MESSAGE(checked << " of 1500 were read");
  CHECK(checked > 50);
}

TEST_CASE("least workspaces are those of nodes that have a choice, and no more than they take") {
  const Plan& plan = plan_named("cheapest");
  const auto with = [&](std::vector<NodeWorkspace> workspaces) {
    return failed_proofs(
        changed(plan, [&](Certificate& certificate) { certificate.workspaces = workspaces; }));
  };
  const auto& nodes = plan.step.graph->nodes;
  std::int32_t convolution = 0, other = 0;
  for (std::int32_t i = 0; i < std::ssize(nodes); ++i) {
    (wants_workspace(nodes[static_cast<std::size_t>(i)]) ? convolution : other) = i;
  }
  CHECK(with({{other, 1_B}}).find("has no choice of engines") != std::string::npos);
  CHECK(with({{convolution, 1_GiB}}).find("less than its least of 1073741824") !=
        std::string::npos);
  CHECK(with({{convolution, 1_B}, {convolution, 1_B}}).find("there is no node") !=
        std::string::npos);
  CHECK(with({{-1, 1_B}}).find("there is no node -1") != std::string::npos);
  CHECK(with({{1'000'000, 1_B}}).find("there is no node 1000000") != std::string::npos);
}

TEST_CASE("a plan without a certificate is said to have bounds that were not compared") {
  Plan plan = plan_named("cheapest");
  plan.certificate.reset();
  for (const Check& check : check_certificate(plan)) {
    CHECK(check.passed);
    CHECK(check.name.ends_with(" not compared"));
  }
  const auto workspaces = rule_workspace_source(8.6);
  CHECK(validate_plan(plan, *workspaces).passed());
  CHECK(write_plan(plan).find("certificate") == std::string::npos);
}

}  // namespace stowage::test
