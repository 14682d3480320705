// validate of a plan for PyTorch: the step is made anew from what the plan was made of, wherever
// the plan lies, and every change is named with its place.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

constexpr const char* small_net = R"(model: blocks
inputs:
  image: {shape: [batch, 64, 32, 32]}
  label: {shape: [batch], dtype: int64}
blocks:
  pair:
    layers:
      - conv2d: {name: conv1, channels: 64, kernel: 3, padding: 1}
      - batch_norm: {name: bn}
      - relu: {name: relu}
      - conv2d: {name: conv2, channels: 64, kernel: 3, padding: 1}
      - relu: {name: end}
layers:
  - pair: {name: block, from: image, repeat: 4}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

/// A plan of a description, both in the folder, named from where the program runs.
std::string planned_net(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::string path = folder.path("p.json");
  std::vector<std::string> words{
      "plan",         fs::relative(folder.file("net.yaml", small_net)).string(),
      "--for",        "pytorch",
      "--batch",      "128",
      "--optimizer",  "adamw",
      "--gpu-memory", "900MiB",
      "-o",           path};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome planned = stowage_program(words);
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  return path;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// With one text in the place of another, which is there once at least.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a plan for PyTorch is validated from what it was made of") {
  const TemporaryFolder folder;
  const std::string path = planned_net(folder);
  const Outcome shown = stowage_program({"validate", path});
  CAPTURE(shown.out);
  CAPTURE(shown.err);
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.starts_with(
      "a plan for PyTorch of blocks, batch 128, on a generic 900.0 MiB card\n"));
  CHECK(
      shown.out.ends_with("valid on paper (15 checks); not run: PyTorch runs it, and "
                          "stowage.verify compares a step of the script with it\n"));
  const json answer = json::parse(stowage_program({"validate", path, "--format", "json"}).out);
  CHECK(answer["verdict"] == "valid");
  CHECK(answer["plan"] == nullptr);
  CHECK(answer["ran"] == json({"model"}));
  CHECK(answer["checks"].size() == 15);
  CHECK(answer["checks"][0]["name"] == "step hash");
}

TEST_CASE("what a validated plan for PyTorch says wrongly is named with its place") {
  const TemporaryFolder folder;
  const std::string path = planned_net(folder);
  const std::string text = text_of(path);
  const std::string peak =
      "\"peak_allocated_bytes\": " + json::parse(text)["totals"]["peak_allocated_bytes"].dump();
  (void)folder.file("p.json", replaced(text, peak, "\"peak_allocated_bytes\": 1024"));
  const Outcome shown = stowage_program({"validate", path});
  CHECK(shown.exit_code == 1);
  const std::size_t line =
      1 + static_cast<std::size_t>(std::count(
              text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(peak)), '\n'));
  CHECK(shown.out.find(path + ":" + std::to_string(line) +
                       ":36: 'peak_allocated_bytes' is 1024, "
                       "counted are ") != std::string::npos);
  CHECK(shown.out.find("not valid: 1 of 15 checks failed") != std::string::npos);
}

TEST_CASE("a plan and its step are found from any folder, and may be moved together") {
  const TemporaryFolder folder, other;
  const std::string path = planned_net(folder);
  CHECK(json::parse(text_of(path))["question"]["model"] == "./net.yaml");
  const std::string moved = other.file("p.json", text_of(path));
  CHECK(stowage_program({"validate", moved}).err ==
        moved + ": error: the plan was made of './net.yaml', and there is no '" +
            other.path("net.yaml") +
            "'\n  it is looked for from the plan's own folder; --step FILE names it where it lies "
            "now\n");
  CHECK(stowage_program({"export", moved, "--to", "deepspeed"}).err ==
        moved + ": error: the plan was made of './net.yaml', and there is no '" +
            other.path("net.yaml") + "'\n  it is looked for from the plan's own folder\n");
  CHECK(stowage_program({"validate", moved, "--step", folder.path("net.yaml")}).exit_code == 0);
  (void)other.file("net.yaml", small_net);
  CHECK(stowage_program({"validate", moved}).exit_code == 0);
  // Another step than the plan's.
  (void)other.file("net.yaml", replaced(small_net, "features: 10", "features: 11"));
  const Outcome another = stowage_program({"validate", moved});
  CHECK(another.exit_code == 1);
  CHECK(another.out.find("the plan is of another step than './net.yaml' has now") !=
        std::string::npos);
}

TEST_CASE("a host that a plan for PyTorch was made with is asked about again") {
  const TemporaryFolder folder;
  const std::string path = planned_net(folder, {"--host-memory", "64GiB"});
  const json question = json::parse(text_of(path))["question"];
  CHECK(question["settings"]["host_memory"] == json{"64GiB"});
  CHECK(stowage_program({"validate", path}).exit_code == 0);
}

TEST_CASE("a recorded step's plan is validated with the recording") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.json");
  const std::string step = testing::source_path("/tests/recorded/resnet18.json");
  const Outcome planned =
      stowage_program({"plan", step, "--for", "pytorch", "--batch", "64", "--gpu-memory", "1600MiB",
                       "--choose", "offload-expandable", "-o", path});
  CAPTURE(planned.out);
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  const Outcome shown = stowage_program({"validate", path});
  CAPTURE(shown.out);
  CAPTURE(shown.err);
  CHECK(shown.exit_code == 0);
}

TEST_CASE("regions in regions are validated one level deep") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.json");
  const std::string step = testing::source_path("/tests/recorded/stages.json");
  const Outcome planned =
      stowage_program({"plan", step, "--for", "pytorch", "--batch", "128", "--gpu-memory", "640MiB",
                       "--choose", "checkpoint-nested", "-o", path});
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK(stowage_program({"validate", path}).exit_code == 0);
  const std::string deep =
      folder.file("deep.json", replaced(text_of(path), R"({"module": "stem[0:4]"})",
                                        R"({"module": "stem[0:4]"}, {"module": "stem.0"})"));
  const Outcome refused = stowage_program({"validate", deep});
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err == "error: " + deep +
                           ": the recount does not know 'stem.0', which runs again within 2 "
                           "others\n  stowage.rehearse and stowage.verify hold it to its step "
                           "(docs/apply.md)\n");
}

TEST_CASE("a plan for PyTorch is not run by stowage, nor is --step of another plan") {
  const TemporaryFolder folder;
  const std::string path = planned_net(folder);
  CHECK(stowage_program({"validate", path, "--on", "host"}).err ==
        path +
            ": error: a plan for PyTorch is run by PyTorch, not by stowage\n"
            "  stowage.verify compares a step of the script with it (docs/apply.md); --model-only "
            "checks it on paper\n");
  CHECK(stowage_program({"validate", path, path, "--step", "net.yaml"}).err ==
        "<command line>: error: --step is of one plan, and of one for PyTorch\n");
  const Outcome piped = stowage_program({"validate", "-"}, {.input = text_of(path)});
  CHECK(piped.exit_code == 2);  // its step lies beside the file, which stdin is not
}

}  // namespace stowage
