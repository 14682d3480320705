// plan, validate, export and probe as a user runs them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Circumstances;
using testing::file_text;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

// Deep and narrow in parameters, wide in activations: swapping helps.
std::string deep_net(bool with_batch_norm) {
  std::string text = R"(model: deep
inputs:
  image: {shape: [batch, 8, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
)";
  for (int i = 0; i < 4; ++i) {
    text += "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n";
    if (with_batch_norm) text += "  - batch_norm\n";
    text += "  - relu\n";
  }
  return text + R"(  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";
}

json parsed_plan(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return json::parse(outcome.out);
}

std::vector<std::string> planning(const std::string& model, const std::string& budget) {
  return {"plan",     model,  "--batch",     "32",
          "--budget", budget, "--placement", "activations,optimizer,weights,recompute"};
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a plan within the budget is written, checked on paper and run on the host") {
  const TemporaryFolder folder;
  const std::string model = folder.file("deep.yaml", deep_net(false));
  const std::string path = folder.path("plan.yaml");
  const Outcome planned =
      stowage_program(with(planning(model, "2MiB"), {"-o", path, "--format", "json"}));
  CHECK(planned.exit_code == 0);
  CHECK(testing::said_beside_cudnn(planned) ==
        "note: no card was named: times are those of a generic card with an RTX 3090's rates\n");
  CHECK(folder.names() == std::vector<std::string>{"deep.yaml", "plan.yaml"});

  const json answer = parsed_plan(planned);
  CHECK(answer["schema_version"] == 1);
  CHECK(answer["written"] == path);
  REQUIRE_FALSE(answer["plans"].empty());
  for (const json& plan : answer["plans"]) {
    CAPTURE(plan.dump());
    CHECK(plan["budget_bytes"] == 2 << 20);
    CHECK(plan["arena_bytes"] <= plan["budget_bytes"]);
    CHECK(plan["gpu_peak_bytes"] <= plan["arena_bytes"]);
    CHECK(plan["arena_lower_bound_bytes"] <= plan["arena_bytes"]);
    CHECK(plan["pcie_bytes"].get<std::int64_t>() ==
          plan["h2d_bytes"].get<std::int64_t>() + plan["d2h_bytes"].get<std::int64_t>());
    CHECK(plan["pcie_lower_bound_bytes"] <= plan["pcie_bytes"]);
    CHECK(plan["cost_lower_bound_seconds"] <= plan["cost_seconds"]);
    CHECK(plan["gap"] >= 0);
    CHECK(plan["overhead_gap"] >= 0);
    CHECK(plan["step_lower_bound_seconds"] <= plan["step_seconds"]);
    CHECK(plan["step_gap"] >= 0);
    CHECK(plan["host_peak_bytes"].is_number_integer());
    CHECK(plan["validation"] ==
          json({{"model", "passed"}, {"host", "not_run"}, {"cuda", "not_run"}}));
  }

  const Outcome on_paper = stowage_program({"validate", path, "--model-only", "--format", "json"});
  CHECK(on_paper.exit_code == 0);
  CHECK(on_paper.err.empty());
  const json paper = parsed_plan(on_paper);
  CHECK(paper["ran"] == json({"model"}));
  CHECK(paper["measured"].is_null());

  CHECK(paper["checks"].back()["name"] == "source not compared");
  CHECK(paper["checks"].back()["detail"] == "--source compares");
  const json compared = parsed_plan(
      stowage_program({"validate", path, "--model-only", "--source", "--format", "json"}));
  CHECK(compared["checks"].back()["name"] == "source");
  CHECK(compared["checks"].back()["passed"] == true);

  const Outcome on_host = stowage_program({"validate", path, "--on", "host", "--format", "json"});
  CHECK(on_host.exit_code == 0);
  const json host = parsed_plan(on_host);
  CHECK(host["ran"] == json({"model", "host"}));
  const json* written = nullptr;
  for (const json& plan : answer["plans"]) {
    if (plan["name"] == answer["chosen"]) written = &plan;
    CHECK(plan["step_seconds"] >= answer["plans"][0]["all_gpu_step_seconds"]);
  }
  REQUIRE(written != nullptr);
  for (const json& plan : answer["plans"]) {
    CHECK((*written)["step_seconds"] <= plan["step_seconds"]);
  }
  for (const char* figure : {"h2d_bytes", "d2h_bytes", "gpu_peak_bytes"}) {
    CHECK(host["measured"][figure] == (*written)[figure]);
  }
  for (const json& check : host["checks"]) {
    CAPTURE(check.dump());
    CHECK(check["passed"] == true);
    CHECK(check["name"].is_string());
    CHECK(check["detail"].is_string());
  }

  const Outcome cheapest =
      stowage_program(with(planning(model, "2MiB"), {"-o", path, "--choose", "cheapest"}));
  CHECK(cheapest.exit_code == 0);
  const Outcome drawn = stowage_program({"export", path, "--to", "dot"});
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out.substr(0, 8) == "digraph ");
  CHECK(drawn.out.find("color=red") != std::string::npos);
}

TEST_CASE("a plan asks for a GPU where there is none: exit code 3 and no pass") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  REQUIRE(
      stowage_program({"plan", "mlp", "--batch", "4", "--budget", "64MiB", "-o", path}).exit_code ==
      0);
  const Outcome outcome = stowage_program({"validate", path, "--on", "cuda", "--format", "json"});
  if (outcome.exit_code == 0) {
    MESSAGE("a GPU ran it");
    return;
  }
  CHECK(outcome.exit_code == 3);
  const json answer = parsed_plan(outcome);
  CHECK(answer["ran"] == json({"model"}));
  CHECK(answer["not_run"].is_string());
  CHECK(answer["measured"].is_null());
}

TEST_CASE("a tampered plan is a clean no") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  REQUIRE(
      stowage_program({"plan", "mlp", "--batch", "4", "--budget", "64MiB", "-o", path}).exit_code ==
      0);
  std::string text = file_text(path);
  const std::size_t at = text.find("budget_bytes:");
  REQUIRE(at != std::string::npos);
  text.replace(at, text.find('\n', at) - at, "budget_bytes: 1");
  const Outcome outcome =
      stowage_program({"validate", folder.file("small.yaml", text), "--format", "json"});
  CHECK(outcome.exit_code == 1);
  const json answer = parsed_plan(outcome);
  CHECK(answer["ran"] == json({"model"}));
  bool budget_failed = false;
  for (const json& check : answer["checks"]) {
    if (check["name"] == "budget") budget_failed = !check["passed"].get<bool>();
  }
  CHECK(budget_failed);
}

TEST_CASE("a budget below what one operation needs names it, and nothing is written") {
  const TemporaryFolder folder;
  const std::string model = folder.file("deep.yaml", deep_net(false));
  const Outcome outcome =
      stowage_program(with(planning(model, "20KiB"), {"-o", folder.path("plan.yaml")}));
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("no plan keeps within 20.0 KiB\n  ") != std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"deep.yaml"});
}

TEST_CASE("what changes the training is never taken by itself") {
  const TemporaryFolder folder;
  const std::string model = folder.file("deep.yaml", deep_net(true));
  const std::string path = folder.path("plan.yaml");
  // Below what the whole batch's batch_norm needs at once, above a part's.
  const auto words = planning(model, "500KiB");
  const Outcome refused = stowage_program(with(words, {"-o", path}));
  CAPTURE(refused.out);
  CHECK(refused.exit_code == 1);
  const std::size_t at = refused.out.find("--choose micro-batch-");
  REQUIRE(at != std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"deep.yaml"});

  const std::string name = refused.out.substr(at + 9, refused.out.find(' ', at + 9) - at - 9);
  const Outcome taken = stowage_program(with(words, {"-o", path, "--choose", name}));
  CAPTURE(taken.err);
  CHECK(taken.exit_code == 0);
  CHECK(stowage_program({"validate", path}).exit_code == 0);
}

TEST_CASE("validate runs several steps and says what becomes of the loss") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  REQUIRE(stowage_program({"plan", "-", "--batch", "8", "--budget", "60%", "-o", path},
                          {.input = deep_net(false)})
              .exit_code == 0);
  const json one = parsed_plan(stowage_program({"validate", path, "--format", "json"}));
  CHECK(one["measured"]["steps"] == 1);
  CHECK(one["measured"]["losses"].size() == 1);
  const Outcome outcome = stowage_program({"validate", path, "--steps", "3", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json three = parsed_plan(outcome);
  CHECK(three["measured"]["steps"] == 3);
  REQUIRE(three["measured"]["losses"].size() == 3);
  CHECK(three["measured"]["losses"][0] == one["measured"]["losses"][0]);
  CHECK(three["measured"]["losses"][2] != one["measured"]["losses"][0]);
  for (const char* figure : {"h2d_bytes", "d2h_bytes", "planned_h2d_bytes", "planned_d2h_bytes"}) {
    CHECK(three["measured"][figure] == 3 * one["measured"][figure].get<std::int64_t>());
  }
  const Outcome told = stowage_program({"validate", path, "--steps", "3"});
  CHECK(told.out.find(" in the first step, ") != std::string::npos);
  CHECK(told.out.find(" in each of 3 steps") != std::string::npos);
  CHECK(stowage_program({"validate", path, "--steps", "3", "--model-only"}).exit_code == 2);
  CHECK(stowage_program({"validate", path, "--steps", "0"}).exit_code == 2);
}

TEST_CASE("mistakes of planning are told before any work") {
  CHECK(stowage_program({"plan", "mlp"}).err ==
        "<command line>: error: a plan needs --gpu NAME, --gpu-memory SIZE or --budget SIZE\n"
        "  stowage gpus lists the names\n");
  CHECK(stowage_program({"plan", "mlp", "--budget", "8MiB", "--runtime", "ideal"}).exit_code == 2);
  const Outcome budget = stowage_program({"plan", "mlp", "--gpu", "rtx3090", "--budget", "1TiB"});
  CHECK(budget.exit_code == 2);
  CHECK(budget.err.find("--budget 1.0 TiB is more than the ") != std::string::npos);
  const testing::TemporaryFolder folder;
  const Outcome place =
      stowage_program({"plan", "mlp", "--budget", "64MiB", "-o", folder.path("absent/plan.yaml")});
  CHECK(place.exit_code == 2);
  CHECK(place.out.empty());
  const Outcome name = stowage_program({"plan", "mlp", "--budget", "64MiB", "--choose", "all-gup"});
  CHECK(name.exit_code == 2);
  CHECK(name.err.find("--choose: no proposal is called 'all-gup'\n  did you mean 'all-gpu'?\n") !=
        std::string::npos);
}

TEST_CASE("a plan on stdout is the plan alone, and goes on from there") {
  const Outcome plan =
      stowage_program({"plan", "mlp", "--batch", "4", "--gpu-memory", "2GiB", "-o", "-"});
  CHECK(plan.exit_code == 0);
  CHECK(plan.out.find("stowage_plan: ") != std::string::npos);
  const Outcome valid = stowage_program({"validate", "-"}, {.input = plan.out});
  CAPTURE(valid.err);
  CHECK(valid.exit_code == 0);
  // The card can be made again from its name, whatever its compute capability.
  const Outcome older = stowage_program({"plan", "mnist-cnn", "--batch", "4", "--gpu-memory",
                                         "2GiB", "--compute-capability", "7.5", "-o", "-"});
  CHECK(stowage_program({"validate", "-", "--model-only"}, {.input = older.out}).exit_code == 0);
}

TEST_CASE("checks on paper alone and a run exclude each other") {
  const Outcome both = stowage_program({"validate", "-", "--model-only", "--on", "host"});
  CHECK(both.exit_code == 2);
  CHECK(both.out.empty());
  CHECK(both.err == "<command line>: error: --model-only runs nothing, but --on asks for a run\n");
}

TEST_CASE("a plan holds its card: no name of it is looked up again") {
  const TemporaryFolder folder;
  const std::string model = folder.file("deep.yaml", deep_net(false));
  const std::string plan = folder.path() + "/p.yaml";
  for (const std::vector<std::string>& card :
       {std::vector<std::string>{"--gpu", testing::source_path("/tests/gpus/lab.yaml")},
        std::vector<std::string>{"--gpu-memory", "8100MiB", "--compute-capability", "7.5"}}) {
    const Outcome made = stowage_program(with({"plan", model, "--batch", "32", "-o", plan}, card));
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
    CHECK(file_text(plan).find("cuda_total_bytes: 8493465600\n") != std::string::npos);
    const Outcome checked = stowage_program({"validate", plan, "--model-only"});
    INFO(checked.out, checked.err);
    CHECK(checked.exit_code == 0);
  }
}

TEST_CASE("a budget alone is no card's size") {
  const auto device = [](const std::string& option) {
    return parsed_plan(
        stowage_program({"plan", "-", "--batch", "2", option, "2GiB", "--format", "json"},
                        {.input = deep_net(false)}))["device"];
  };
  CHECK(device("--budget")["total_bytes"].is_null());
  CHECK(device("--budget")["available_bytes"].is_null());
  CHECK(device("--gpu-memory")["total_bytes"] == std::int64_t{2} << 30);
  CHECK(device("--gpu-memory")["available_bytes"] > 0);
}

TEST_CASE("a plan says how much of it runs on the CPU") {
  // With half of it neither cuDNN's workspaces nor the rule's let everything stay on the GPU.
  const std::vector<std::string> words{"plan", "-", "--batch", "32", "--budget", "50%"};
  const auto run = [&](const std::vector<std::string>& more) {
    return stowage_program(with(words, more), {.input = deep_net(false)});
  };
  const json plans = parsed_plan(run({"--format", "json"}))["plans"];
  REQUIRE(plans.size() >= 2);
  CHECK(plans[0]["name"] == "cheapest");
  CHECK(std::ranges::any_of(plans, [](const json& plan) { return plan["nodes_on_cpu"] > 0; }));
  CHECK(plans[1]["name"] == "min-pcie");
  CHECK(plans[1]["nodes_on_cpu"] == 0);
  const std::string told = run({}).out;
  for (const json& plan : plans) {
    const std::string in_words = plan["in_words"];
    CHECK((in_words.find(" on the CPU") != std::string::npos) == (plan["nodes_on_cpu"] > 0));
    CHECK(told.find(fmt::format("\n  {}: {}\n", plan["name"].get<std::string>(), in_words)) !=
          std::string::npos);
  }
}

TEST_CASE("means of placement can be left out, and the fewest bytes asked for") {
  const auto answer = [](const std::vector<std::string>& more) {
    return parsed_plan(stowage_program(
        with({"plan", "-", "--batch", "32", "--budget", "2MiB", "--format", "json"}, more),
        {.input = deep_net(false)}));
  };
  const json all = answer({});
  const json on_gpu = answer({"--placement", "activations,weights"});
  for (const json& plan : on_gpu["plans"]) CHECK(plan["nodes_on_cpu"] == 0);
  const json fewest = answer({"--minimize", "pcie"});
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), chosen = 0;
  for (const json& plan : fewest["plans"]) {
    const std::int64_t bytes = plan["pcie_bytes"];
    least = std::min(least, bytes);
    if (plan["name"] == fewest["chosen"]) chosen = bytes;
  }
  CHECK(chosen == least);
  const Outcome misspelt = stowage_program(
      {"plan", "-", "--budget", "2MiB", "--placement", "activation"}, {.input = deep_net(false)});
  CHECK(misspelt.exit_code == 2);
  CHECK(misspelt.err.find("--placement: 'activation' is no means of placement") !=
        std::string::npos);
  CHECK(misspelt.err.find("activations") != std::string::npos);
}

TEST_CASE("the step's time over budgets is written as a table or a drawing") {
  const TemporaryFolder folder;
  const std::string csv = folder.path("f.csv"), svg = folder.path("f.svg");
  for (const std::string& path : {csv, svg}) {
    const Outcome outcome = stowage_program(with(planning("-", "2MiB"), {"--frontier", path}),
                                            {.input = deep_net(false)});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("budgets is written to " + path) != std::string::npos);
  }
  const std::string table = testing::file_text(csv);
  CHECK(table.starts_with("budget_bytes,plan,step_seconds,step_lower_bound_seconds,pcie_bytes\n"));
  CHECK(std::ranges::count(table, '\n') > 5);
  const std::string drawing = testing::file_text(svg);
  CHECK(drawing.starts_with("<svg "));
  CHECK(drawing.ends_with("</svg>\n"));
  const Outcome unknown = stowage_program(with(planning("-", "2MiB"), {"--frontier", "f.png"}),
                                          {.input = deep_net(false)});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("ends in .csv or .svg") != std::string::npos);
}

TEST_CASE("what is no plan is bad input") {
  const testing::TemporaryFolder folder;
  const std::string absent = folder.path("absent.yaml");
  CHECK(stowage_program({"validate", absent}).err ==
        "error: cannot open '" + absent + "': No such file or directory\n");
  const Outcome model = stowage_program({"validate", "-"}, {.input = deep_net(false)});
  CHECK(model.exit_code == 2);
  CHECK(model.out.empty());
  CHECK_FALSE(model.err.empty());
}

TEST_CASE("a model is drawn with its layers") {
  const Outcome drawn = stowage_program({"export", "-", "--to", "dot"}, {.input = deep_net(false)});
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out.find("label=\"fc\\nlinear\\n[batch, 10]\"") != std::string::npos);
  const Outcome later = stowage_program({"export", "mlp", "--to", "html"});
  CHECK(later.exit_code == 2);
  CHECK(later.err ==
        "<command line>: error: --to html is not supported yet\n"
        "  --to takes dot, json, tensorflow, deepspeed, fsdp, accelerate, torchtitan, megatron, "
        "axolotl, trl, llama.cpp, trace, memory-snapshot, svg, markdown\n");
}

TEST_CASE("probe answers with or without a GPU") {
  const Outcome outcome = stowage_program({"probe", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json answer = parsed_plan(outcome);
  CHECK(answer["gpus"].is_array());
  CHECK(answer["why_no_gpu"].is_string() == answer["gpus"].empty());
  CHECK(answer["host"]["memory_bytes"] > 0);
}

TEST_CASE("a budget in percent is of what everything on the GPU takes at least") {
  const auto budget = [](const Words& how) {
    const Outcome outcome =
        stowage_program(Words{"plan", "mlp", "--batch", "64", "--format", "json"} + how);
    CHECK(outcome.exit_code == 0);
    return parsed_plan(outcome)["plans"][0];
  };
  const json whole = budget({"--budget", "100%"});
  CHECK(whole["name"] == "all-gpu");
  CHECK(whole["budget_bytes"] == whole["arena_lower_bound_bytes"]);
  const json part = budget({"--gpu", "gtx-960-2gb", "--budget", "80%"});
  CHECK(part["budget_bytes"].get<std::int64_t>() ==
        whole["budget_bytes"].get<std::int64_t>() * 8 / 10);
  for (const char* wrong : {"0%", "101%", "%", "x%", "-5%", "nan%"}) {
    CAPTURE(wrong);
    const Outcome refused = stowage_program({"plan", "mlp", "--budget", wrong});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err == fmt::format("<command line>: error: --budget takes more than 0 % and at "
                                     "most 100 %, not '{}'\n",
                                     wrong));
  }
  CHECK(stowage_program({"check", "mlp", "--gpu-memory", "80%"}).exit_code == 2);
}

}  // namespace stowage
