// Every small change to a plan for PyTorch is refused by the reader or by a check, but for those
// listed here, each with its reason. The list may only shrink.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/planner/validate_pytorch/planned.hpp"

namespace stowage {

using Json = nlohmann::ordered_json;
using testing::proposal_of;
using testing::recount_text;
using testing::request_for;

namespace {

/// Why a change of this kind may pass.
const std::map<std::string, std::string> may_pass{
    {"written_by other", "a label for readers"},
    {"written_by empty", "a label for readers"},
    {"mode removed", "it is optional, and a training step the default"},
    {"mode null", "it is optional, and a training step the default"},
    {"chunks removed", "optional, and null"},
    {"optimizer_on_cpu removed", "optional, and null"},
    {"stream removed", "optional, and empty"},
    {"offload.[] swapped", "entries of one copy's begin may stand in any order"},
    {"offload.[].saved.[] swapped", "a storage's tensors may stand in any order"},
    {"checkpoint.[] swapped", "modules may stand in any order"},
    {"optimizer_on_cpu.parameters.[] swapped", "parameters may stand in any order"},
    {"offload.[].release removed", "null, which it may be, may be left out"},
    {"totals.pcie_lower_bound_bytes -1",
     "a lower bound, if not the best: no certificate proves it"},
    {"totals.pcie_lower_bound_bytes 0", "the same"},
    {"totals.pcie_lower_bound_bytes +1", "no certificate proves the bound on offloaded tensors"},
    {"totals.pcie_lower_bound_bytes times 1.5", "the same, up to what the plan moves"},
    {"totals.step_lower_bound_seconds less", "the same"},
    {"totals.step_lower_bound_seconds more", "the same, up to the plan's step"},
    {"totals.step_lower_bound_seconds 0", "the same"},
    {"totals.step_lower_bound_seconds null", "a plan may have no bound"},
    {"totals.step_lower_bound_seconds removed", "the same"},
};

/// And what may pass of some plans of tests/recorded/stages.json.
using Equivalent = std::set<std::string>;
/// Of the last region in another one: PyTorch ends that one's second run where it begins.
const Equivalent of_nested_regions{"checkpoint.[] removed"};
/// What is let go at the last call of forward is let go where backward begins.
const Equivalent of_last_call{"offload.[].release null"};

struct PlanMutant {
  std::string kind;
  std::string text;
};

/// Visits the plan with each of its values changed, one at a time.
class PlanMutator {
 public:
  PlanMutator(const std::string& plan, std::function<void(const PlanMutant&)> visit)
      : root_(Json::parse(plan)), visit_(std::move(visit)) {}

  void run() { walk(root_, ""); }

 private:
  void emit(const std::string& kind) { visit_({kind, root_.dump() + "\n"}); }

  /// With another value in its place.
  void put(Json& value, const std::string& kind, Json other) {
    if (other == value) return;
    std::swap(value, other);
    emit(kind);
    std::swap(value, other);
  }

  void walk(Json& value, const std::string& path) {
    if (value.is_object()) return walk_members(value, path);
    if (value.is_array()) return walk_elements(value, path);
    if (value.is_string()) {
      put(value, path + " other", value.get<std::string>() + "x");
      put(value, path + " empty", "");
      put(value, path + " null", nullptr);
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      put(value, path + " +1", number + 1);
      if (number > 0) put(value, path + " -1", number - 1);
      put(value, path + " 0", 0);
      put(value, path + " times 1.5", number + number / 2 + 1);
      put(value, path + " negative", -number);
      put(value, path + " a text", "1");
    } else if (value.is_number_float()) {
      put(value, path + " less", value.get<double>() * 0.9);
      put(value, path + " more", value.get<double>() * 1.1);
      put(value, path + " 0", 0.0);
      put(value, path + " null", nullptr);
    } else if (value.is_null()) {
      put(value, path + " a text", "1");
      put(value, path + " an object", Json::object());
    }
  }

  void walk_members(Json& object, const std::string& path) {
    const Json whole = object;
    for (auto member = whole.begin(); member != whole.end(); ++member) {
      const std::string inner = path.empty() ? member.key() : path + "." + member.key();
      if (inner == "question") continue;  // who asked has made the step of it
      object.erase(member.key());
      emit(inner + " removed");
      object = whole;
      walk(object[member.key()], inner);
    }
    object["unknown"] = 1;
    emit(path + " with an unknown member");
    object = whole;
  }

  void walk_elements(Json& array, const std::string& path) {
    const Json whole = array;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (i > 1 && i + 1 < whole.size()) continue;  // what holds of two holds of all
      array.erase(array.begin() + static_cast<std::ptrdiff_t>(i));
      emit(path + ".[] removed");
      array = whole;
      array.push_back(whole[i]);
      emit(path + ".[] twice");
      array = whole;
      if (i + 1 < whole.size() && whole[i] != whole[i + 1]) {
        std::swap(array[i], array[i + 1]);
        emit(path + ".[] swapped");
        array = whole;
        put_neighbours_points(array, i, path);
      }
      walk(array[i], path + ".[]");
    }
  }

  /// The points of the next entry in the place of this one's.
  void put_neighbours_points(Json& array, std::size_t i, const std::string& path) {
    for (const char* point : {"release", "fetch", "start"}) {
      if (!array[i].is_object() || !array[i].contains(point)) return;
      put(array[i][point], fmt::format("{}.[].{} neighbour", path, point), array[i + 1][point]);
    }
  }

  Json root_;
  std::function<void(const PlanMutant&)> visit_;
};

/// Changes the plan, and notes which kinds of changes pass.
int count_mutants(const PytorchRequest& request, const PytorchPlan& plan,
                  std::map<std::string, std::string>& passed, const Equivalent& equivalent = {}) {
  int mutants = 0;
  std::set<std::string> unnoticed;
  const std::string text = write_pytorch_plan(plan);
  REQUIRE(recount_text(request, text)->passed());
  PlanMutator(text, [&](const PlanMutant& mutant) {
    ++mutants;
    const auto validation = recount_text(request, mutant.text);
    if (!validation || !validation->passed()) return;
    if (equivalent.contains(mutant.kind)) {
      unnoticed.insert(mutant.kind);
    } else {
      passed.try_emplace(mutant.kind, mutant.text);
    }
  }).run();
  CHECK(unnoticed == equivalent);
  return mutants;
}

}  // namespace

TEST_CASE("every change to a plan for PyTorch is refused, but for the listed ones") {
  std::map<std::string, std::string> passed;
  int mutants = 0;
  const PytorchRequest training = request_for(testing::small_blocks(), 128, 516_MiB);
  for (const char* name : {"offload", "checkpoint-1-of-4", "checkpoint-2-of-4", "micro-batch-2",
                           "cpu-optimizer-offload", "early-update-checkpoint-1-of-4"}) {
    mutants += count_mutants(training, proposal_of(training, name), passed);
  }
  const PytorchRequest wide = request_for(testing::wide_layers(), 8, 116_MiB);
  mutants += count_mutants(wide, proposal_of(wide, "cpu-optimizer-"), passed);
  const PytorchRequest stages = testing::recorded_stages(128, 256_MiB);
  mutants +=
      count_mutants(stages, proposal_of(stages, "checkpoint-nested"), passed, of_nested_regions);
  mutants += count_mutants(stages, proposal_of(stages, "checkpoint-6-of-7"), passed, of_last_call);
  const PytorchRequest inference =
      request_for(testing::small_blocks(), 128, 128_MiB, Mode::inference);
  const auto parts = make_pytorch_plans(inference, *rule_workspace_source(8.6));
  REQUIRE(parts.has_value());
  CHECK(parts->front().plan.chunks.has_value());
  for (const PytorchProposal& proposal : *parts) {
    mutants += count_mutants(inference, proposal.plan, passed);
  }
  MESSAGE(mutants << " changed plans, of which " << passed.size() << " kinds pass");
  CHECK(mutants > 500);
  for (const auto& one : passed) {
    CHECK_MESSAGE(may_pass.contains(one.first), one.first, " is not refused: ", one.second);
  }
  for (const auto& one : may_pass) {
    CHECK_MESSAGE(passed.contains(one.first), "now refused, to be taken off the list: ", one.first);
  }
}

}  // namespace stowage
