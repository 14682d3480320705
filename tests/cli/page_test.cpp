// --report: a page about an answer. What it shows in a browser is tests/pages/pages_test.py's.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

std::string page_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// What a page draws.
json shown_by(const std::string& page) {
  const std::string opening = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("</script>", begin);
  return json::parse(page.substr(begin + opening.size(), end - begin - opening.size()));
}

/// A quantity at a node, from its list of changes.
std::int64_t bytes_at_node(const json& changes, std::int64_t node) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); i += 2) {
    if (changes[i].get<std::int64_t>() <= node) value = changes[i + 1].get<std::int64_t>();
  }
  return value;
}

std::int64_t most_in_changes(const json& changes) {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < changes.size(); i += 2) {
    most = std::max(most, changes[i].get<std::int64_t>());
  }
  return most;
}

/// The command's JSON, and what the page of the same command draws. The page's answer is the
/// command's but for the path of the page.
std::pair<json, json> answer_and_page(std::vector<std::string> words, int exit_code) {
  const TemporaryFolder folder;
  const std::string path = folder.path("page.html");
  words.insert(words.end(), {"--format", "json", "--report", path});
  const Outcome outcome = stowage_program(words);
  INFO(outcome.err);
  CHECK(outcome.exit_code == exit_code);
  json answer = json::parse(outcome.out);
  json shown = shown_by(page_in(path));
  CHECK(answer["report"] == path);
  json without = answer;
  without.erase("report");
  without.erase("schema_version");
  CHECK(shown["answer"] == without);
  return {std::move(answer), std::move(shown)};
}

/// At the peak the classes drawn are the answer's footprint.
void check_drawn_peak(const json& memory, const json& footprint) {
  std::int64_t drawn = 0, told = 0;
  for (const json& each : memory["classes"]) {
    const std::int64_t bytes = bytes_at_node(each["bytes"], memory["peak"]);
    CHECK(footprint[each["key"].get<std::string>()] == bytes);
    drawn += bytes;
  }
  for (const auto& [name, bytes] : footprint.items()) told += bytes.get<std::int64_t>();
  CHECK(drawn == told);
  std::int64_t of_tensors = 0;
  for (const json& tensor : memory["tensors"]) {
    if (tensor[3] <= memory["peak"] && memory["peak"] < tensor[4]) {
      of_tensors += tensor[5].get<std::int64_t>();
    }
  }
  CHECK(of_tensors == told);
}

}  // namespace

TEST_CASE("a check's page draws the check's own figures") {
  for (const auto& [batch, exit_code] : {std::pair("8", 0), std::pair("4096", 1)}) {
    const auto [answer, shown] =
        answer_and_page({"check", "resnet18", "--gpu-memory", "8GiB", "--batch", batch}, exit_code);
    CHECK(shown["command"] == "check");
    check_drawn_peak(shown["memory"], answer["footprint"]);
    CHECK(most_in_changes(shown["memory"]["reserved"]) == answer["peak"]["reserved_bytes"]);
    CHECK(shown["memory"]["node_names"][shown["memory"]["peak"].get<std::size_t>()] ==
          answer["peak"]["at"]);
    std::int64_t at_peak = 0;
    for (const json& layer : shown["layers"]) at_peak += layer["peak_bytes"].get<std::int64_t>();
    CHECK(at_peak == answer["peak"]["tensor_bytes"]);
    bool has_own_batch = false;
    for (const json& point : shown["curve"]) {
      if (point["batch"] != std::stoi(batch)) continue;
      has_own_batch = true;
      CHECK(point["device_bytes"] == answer["device_bytes"]);
    }
    CHECK(has_own_batch);
    CHECK(shown["curve"].size() >= 5);
  }
}

TEST_CASE("of several virtual GPUs a page draws one") {
  const auto [answer, shown] =
      answer_and_page({"check", "mnist-cnn", "--gpu-memory", "8GiB", "--batch", "64", "--runtime",
                       "tensorflow", "--virtual-gpus", "2", "--memory-limit", "1GiB"},
                      0);
  check_drawn_peak(shown["memory"], answer["footprint"]);
  CHECK(shown["replicas"] == 2);
  CHECK(shown["room_bytes"] == std::int64_t{1} << 30);
  CHECK(2 * most_in_changes(shown["memory"]["reserved"]) == answer["peak"]["reserved_bytes"]);
}

TEST_CASE("a page about batches has the curve with the batch to use") {
  const auto [answer, shown] = answer_and_page({"batch", "mnist-cnn", "--gpu-memory", "2GiB"}, 0);
  CHECK(shown["batch"] == answer["recommended"]);
  json without = json::array();
  for (const json& point : shown["curve"]) {
    if (point["batch"] == answer["recommended"]) {
      CHECK(point["device_bytes"] == answer["recommended_device_bytes"]);
    }
    for (const json& other : answer["curve"]) {
      if (other == point) without.push_back(point);
    }
  }
  CHECK(without == answer["curve"]);
}

TEST_CASE("a plan's page draws its arena, its lanes and what lies where") {
  const auto [answer, shown] =
      answer_and_page({"plan", "mnist-cnn", "--batch", "64", "--budget", "8MiB"}, 0);
  const json plan = *std::ranges::find(answer["plans"], answer["chosen"],
                                       [](const json& each) { return each["name"]; });
  CHECK(shown["plan"] == answer["chosen"]);
  std::int64_t at_peak = 0;
  for (const json& each : shown["memory"]["classes"]) {
    at_peak += bytes_at_node(each["bytes"], shown["memory"]["peak"]);
  }
  CHECK(at_peak == plan["gpu_peak_bytes"]);
  CHECK(most_in_changes(shown["memory"]["reserved"]) == plan["arena_bytes"]);
  const json& lanes = shown["lanes"];
  CHECK(lanes["step"].get<double>() * lanes["unit_seconds"].get<double>() ==
        doctest::Approx(plan["step_seconds"].get<double>()).epsilon(1e-3));
  CHECK(lanes["cpu"].size() == plan["nodes_on_cpu"]);
  CHECK(lanes["cpu"].size() + lanes["gpu"].size() == shown["memory"]["node_names"].size());
  std::int64_t copied = 0;
  for (const char* lane : {"to_gpu", "to_host"}) {
    for (const json& copy : lanes[lane]) copied += copy[3].get<std::int64_t>();
  }
  CHECK(copied == plan["pcie_bytes"]);
  CHECK(shown["frontier"].is_null());
}

TEST_CASE("a plan's page has the frontier that was asked for") {
  const TemporaryFolder folder;
  const auto [answer, shown] = answer_and_page({"plan", "mlp", "--batch", "64", "--budget", "1MiB",
                                                "--frontier", folder.path("frontier.csv")},
                                               0);
  REQUIRE(shown["frontier"].size() > 1);
  CHECK(shown["frontier"].back()["budget_bytes"] > shown["frontier"].front()["budget_bytes"]);
}

TEST_CASE("a page about a plan for PyTorch draws the step as hooks run it") {
  const auto [answer, shown] = answer_and_page(
      {"plan", "resnet18", "--batch", "128", "--gpu-memory", "2500MiB", "--for", "pytorch"}, 0);
  const json plan = *std::ranges::find(answer["plans"], answer["chosen"],
                                       [](const json& each) { return each["name"]; });
  REQUIRE(plan["pcie_bytes"] > 0);
  CHECK(most_in_changes(shown["memory"]["reserved"]) == plan["peak_reserved_bytes"]);
  CHECK(shown["offload"].size() == plan["offloaded_storages"]);
  const json& lanes = shown["lanes"];
  CHECK(lanes["step"].get<double>() * lanes["unit_seconds"].get<double>() ==
        doctest::Approx(plan["step_seconds"].get<double>()).epsilon(1e-3));
  std::int64_t copied = 0;
  for (const char* lane : {"to_gpu", "to_host"}) {
    for (const json& copy : lanes[lane]) copied += copy[3].get<std::int64_t>();
  }
  CHECK(plan["micro_batches"] == 1);
  CHECK(copied == plan["pcie_bytes"]);
  CHECK(shown["room_bytes"] == answer["device"]["allocator_bytes"]);
}

TEST_CASE("where there is no plan the page says so") {
  const auto [answer, shown] = answer_and_page(
      {"plan", "resnet18", "--batch", "4096", "--gpu-memory", "1GiB", "--for", "pytorch"}, 1);
  CHECK(answer["plans"].empty());
  CHECK(shown["command"] == "no-plan");
}

TEST_CASE("no name of a model or of a layer ends the element that it stands in") {
  const TemporaryFolder folder;
  const std::string model = folder.file("m.yaml", R"(model: "</script><img onerror=alert(1)>"
inputs:
  x: {shape: [batch, 4]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc, from: x, features: 4}
loss:
  cross_entropy: {from: [fc, label]}
)");
  const std::string step = folder.path("step.json");
  REQUIRE(stowage_program({"lower", model, "--gpu", "t4", "-o", step}).exit_code == 0);
  // A description's layers have plain names; a step's file may have any.
  const std::string text =
      std::regex_replace(page_in(step), std::regex("\"fc([\".])"), "\"<!--<script>fc$1");
  const std::string hostile = folder.file("hostile.json", text);
  const std::string path = folder.path("page.html");
  const Outcome outcome = stowage_program({"check", hostile, "--gpu", "t4", "--report", path});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string page = page_in(path);
  CHECK(occurrences(page, "</script") == 2);
  CHECK(occurrences(page, "<script") == 2);
  CHECK(occurrences(page, "<img") == 0);
  CHECK(occurrences(page, "<!--") == 0);
  CHECK(page.find("<title>&lt;/script&gt;&lt;img onerror=alert(1)&gt;, batch 1") !=
        std::string::npos);
  const json shown = shown_by(page);
  CHECK(shown["title"] == "</script><img onerror=alert(1)>, batch 1, training with sgd, fp32");
  CHECK(shown["layers"][0]["name"] == "<!--<script>fc");
}

TEST_CASE("a page asks for nothing and is the same each time") {
  const TemporaryFolder folder;
  const auto written = [&](const std::string& name) {
    const std::string path = folder.path(name);
    CHECK(stowage_program({"check", "mlp", "--gpu-memory", "8GiB", "--report", path}).exit_code ==
          0);
    return page_in(path);
  };
  const std::string page = written("a.html");
  CHECK(page == written("b.htm"));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(occurrences(page, "src=") == 0);
  CHECK(occurrences(page, "href=") == 1);  // to the answer, in the page itself
  CHECK(occurrences(page, "http") == 2);   // the policy's http-equiv, and the name space of SVG
}

TEST_CASE("a page is refused where there is none, before anything is sized") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& words) {
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(refused({"check", "mlp", "--gpu", "t4", "--report", "page.txt"}) ==
        "<command line>: error: --report page.txt: what is written is HTML, and the name says "
        "something else\n  --report page.html\n");
  CHECK(refused({"check", "mlp", "--gpu", "t4", "--report", "/nowhere/page.html"}) ==
        "error: cannot write '/nowhere/page.html': No such file or directory\n");
  const std::string path = folder.path("page.html");
  CHECK(refused({"check", "mlp", "resnet18", "--gpu", "t4", "--report", path}) ==
        "<command line>: error: --report is of one model on one card\n");
  CHECK(refused({"batch", "mlp", "--gpu", "t4,a10", "--report", path}) ==
        "<command line>: error: --report is of one model on one card\n");
  CHECK(refused({"check", "gpt2", "--gpu", "t4", "--mode", "inference", "--context-length", "64",
                 "--report", path}) ==
        "<command line>: error: --report is of one step, and --context-length sizes two passes\n");
  CHECK(refused({"plan", "gpt2", "--gpu", "t4", "--mode", "inference", "--context-length", "64",
                 "--report", path}) ==
        "<command line>: error: --report is of one step, and --context-length plans two passes\n");
  CHECK(refused({"batch", "gpt2", "--gpu", "t4", "--of", "seq", "--report", path}) ==
        "<command line>: error: --report is of the largest batch, and this is a search for the "
        "largest sequence length\n");
  CHECK(refused({"plan", "mlp", "--budget", "1MiB", "-o", path, "--report", path}) ==
        "<command line>: error: --output and --report name the same file\n");
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a page that cannot be written in full leaves what stood there") {
  const TemporaryFolder folder;
  const std::string path = folder.file("page.html", "before");
  const Outcome outcome = stowage_program(
      {"check", "mlp", "--gpu-memory", "8GiB", "--report", path}, {.largest_file = 4_KiB});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("error: cannot write '" + path + "': ") != std::string::npos);
  CHECK(page_in(path) == "before");
}

TEST_CASE("the page is told of where the answer is, and written beside --quiet too") {
  const TemporaryFolder folder;
  const std::string path = folder.path("page.html");
  const Outcome outcome =
      stowage_program({"check", "mlp", "--gpu-memory", "8GiB", "--report", path});
  CHECK(outcome.out.find("the page is written to " + path + "\n") != std::string::npos);
  std::filesystem::remove(path);
  CHECK(stowage_program({"check", "mlp", "--gpu-memory", "8GiB", "--quiet", "--report", path})
            .out.empty());
  CHECK(std::filesystem::exists(path));
}

}  // namespace stowage
