// Every small change to the plans of tests/plans is refused by the reader or by a check, but for
// those in mutation_survivors.txt, each with its reason. That list may only shrink.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"
#include "tests/planner/validate/plan_mutations.hpp"
#include "tests/support/kept_plans.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

bool survives(const std::string& text) {
  const auto plan = read_plan(std::make_shared<const SourceText>(SourceText{"mutant", text}));
  if (!plan) return false;
  const auto source = rule_workspace_source(plan->inputs.card.compute_capability);
  return validate_plan(*plan, *source).passed();
}

/// "inputs.host.name other" of "inputs.host.name other | a label"; lines of '#' say more.
std::set<std::string> listed_survivors() {
  std::ifstream file(testing::source_path("/tests/planner/validate/mutation_survivors.txt"));
  REQUIRE(file.is_open());
  std::set<std::string> listed;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t bar = line.find(" | ");
    REQUIRE_MESSAGE(bar != line.npos, "a survivor without a reason: ", line);
    CHECK_MESSAGE(listed.insert(line.substr(0, bar)).second, "listed twice: ", line);
  }
  return listed;
}

/// Changes of bounds are a kind of their own where no certificate proves them.
std::string kind_in(const KeptFile& kept, const std::string& kind) {
  const bool is_certified = kept.text.find("\ncertificate: |\n") != kept.text.npos;
  const bool is_about_bounds =
      kind.find("_lower_bound_") != kind.npos || kind.starts_with("inputs.budget_bytes ") ||
      kind.starts_with("totals.proved_optimal ") || kind.starts_with("pinned ");
  return is_about_bounds && !is_certified ? "without a certificate: " + kind : kind;
}

}  // namespace

TEST_CASE("every change to a plan is refused, but for the listed ones") {
  std::map<std::string, std::string> survivors;  // kind, the first example
  int mutants = 0, alive = 0;
  for (const KeptFile& kept : kept_plans()) {
    REQUIRE_MESSAGE(survives(kept.text), kept.path);
    visit_mutants(kept.text, [&](const Mutant& mutant) {
      ++mutants;
      if (mutant.text == kept.text || !survives(mutant.text)) return;
      ++alive;
      survivors.try_emplace(kind_in(kept, mutant.kind), kept.path + ": " + mutant.where);
    });
  }
  MESSAGE(mutants << " mutants, " << alive << " not refused, of " << survivors.size() << " kinds");
  CHECK(mutants > 3000);
  const std::set<std::string> listed = listed_survivors();
  for (const auto& survivor : survivors) {
    CHECK_MESSAGE(listed.contains(survivor.first), survivor.first,
                  " is not refused: ", survivor.second);
  }
  for (const std::string& kind : listed) {
    CHECK_MESSAGE(survivors.contains(kind), "now refused, to be taken off the list: ", kind);
  }
}

}  // namespace stowage::test
