// How the plan command searches and chooses: what is minimised, the host that it assumes, and what
// ends the search.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

/// An MLP whose updates are faster beside the GPU, on the CPU, though everything fits.
const Words roomy{"plan", "mlp", "--batch", "64", "--budget", "64MiB", "--format", "json"};

json search_answer(const Words& words) {
  const Outcome outcome = stowage_program(words);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

double step_of(const json& answer, const std::string& name) {
  for (const json& plan : answer["plans"]) {
    if (plan["name"] == name) return plan["step_seconds"];
  }
  return 0;
}

double shortest_step(const json& answer) {
  double shortest = 1e9;
  for (const json& plan : answer["plans"])
    shortest = std::min<double>(shortest, plan["step_seconds"]);
  return shortest;
}

std::string header_of(const Words& more) {
  const Outcome outcome =
      stowage_program(Words{"plan", "mlp", "--batch", "64", "--budget", "12MiB"} + more);
  const std::size_t end = outcome.out.find("  Plan\n");
  REQUIRE(end != std::string::npos);
  const std::size_t begin = outcome.out.rfind('\n', end) + 1;
  return outcome.out.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("everything on the GPU is taken where it fits, unless the step's time is asked for") {
  const json automatic = search_answer(roomy);
  CHECK(automatic["chosen"] == "all-gpu");
  CHECK(automatic["minimized"] == "all_gpu");
  const json fastest = search_answer(roomy + Words{"--minimize", "time"});
  CHECK(fastest["minimized"] == "time");
  CHECK(step_of(fastest, fastest["chosen"]) == shortest_step(fastest));
  CHECK(fastest["plans"].size() == automatic["plans"].size());
  const json scarce =
      search_answer({"plan", "mlp", "--batch", "64", "--budget", "12MiB", "--format", "json"});
  CHECK(scarce["minimized"] == "time");
  CHECK(step_of(scarce, scarce["chosen"]) == shortest_step(scarce));
  const json fewest = search_answer(roomy + Words{"--minimize", "pcie"});
  CHECK(fewest["minimized"] == "pcie");

  const std::string said =
      stowage_program({"plan", "mlp", "--batch", "64", "--budget", "64MiB"}).out;
  CHECK(said.find("\n  everything fits on the GPU, so 'all-gpu' is taken") != std::string::npos);
  CHECK(stowage_program({"plan", "mlp", "--batch", "64", "--budget", "12MiB"})
            .out.find("\n  not everything fits on the GPU, so the shortest step is taken\n") !=
        std::string::npos);
  const bool is_longer = step_of(automatic, "all-gpu") > shortest_step(automatic);
  CHECK((said.find("; --minimize time takes '") != std::string::npos) == is_longer);
}

TEST_CASE("one gap is printed, that of what is minimised; all of them with -v") {
  for (const Words& how : {Words{}, Words{"--minimize", "pcie"}}) {
    const std::string header = header_of(how);
    CHECK(header.ends_with(" Gap"));
    CHECK(header.find(" gap") == std::string::npos);
  }
  CHECK(header_of({"-v"}).ends_with("Step gap  PCIe gap  Cost gap"));
  const std::string csv =
      stowage_program({"plan", "mlp", "--batch", "64", "--budget", "12MiB", "--format", "csv"}).out;
  CHECK(csv.substr(0, csv.find('\n')).ends_with("step_gap,pcie_gap,overhead_gap,name"));
}

TEST_CASE("a plan's file says nothing of this machine unless it is asked for") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  const Words words{"plan", "mlp", "--batch", "64", "--budget", "12MiB", "-o", path};
  CHECK(stowage_program(words).exit_code == 0);
  const std::string usual = testing::file_text(path);
  CHECK(usual.find("name: \"generic desktop\"") != std::string::npos);
  CHECK(usual.find("source: \"configs/hosts/generic.yaml\"") != std::string::npos);
  CHECK(usual.find("this machine") == std::string::npos);
  for (const char* here : {"here", "this"}) {
    CHECK(stowage_program(words + Words{"--host", here}).exit_code == 0);
    CHECK(testing::file_text(path).find("source: \"this machine\"") != std::string::npos);
  }
}

TEST_CASE("a search that a limit in seconds stops says so, and what was not tried") {
  const Words words{"plan", "resnet50", "--batch", "64", "--budget", "3GiB", "--format", "json"};
  const Outcome stopped = stowage_program(words + Words{"--time-limit", "0.01"});
  CHECK(stopped.exit_code == 0);
  CHECK(stopped.err.find("warning: stopped by --time-limit 0.01: these are the best plans so far, "
                         "which depend on this machine; not tried: ") != std::string::npos);
  const json search = json::parse(stopped.out)["search"];
  CHECK(search["stopped_by"] == "time_limit");
  CHECK_FALSE(search["untried"].empty());
  const Outcome whole = stowage_program({"plan", "mlp", "--batch", "64", "--budget", "12MiB",
                                         "--format", "json", "--time-limit", "86400"});
  CHECK(whole.err.find("stopped") == std::string::npos);
  const json ended = json::parse(whole.out)["search"];
  CHECK(ended["stopped_by"].is_null());
  CHECK(ended["effort"] == 1);
  CHECK(ended["work"] > 0);
  CHECK(ended["work_limit"] > ended["work"]);
  CHECK(ended["untried"].empty());
}

}  // namespace stowage
