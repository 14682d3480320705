#include "planner/plan/plan_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "estimator/document/step_hash.hpp"
#include "tests/support/resident_plan.hpp"

using namespace stowage;

namespace {

SourceTextPtr source_of(std::string text) {
  return std::make_shared<const SourceText>(SourceText{"p.yaml", std::move(text)});
}

constexpr const char* two_layers = R"(model: "two layers"
inputs:
  image: {shape: [batch, 2, 6, 6]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv, from: image, channels: 2, kernel: 3}
  - flatten
  - linear: {name: fc, features: 3}

  # done
loss:
  cross_entropy: {from: [fc, label]}
)";

StorageId storage_named(const Plan& plan, const std::string& name) {
  const auto& storages = plan.step.graph->storages;
  const auto found = std::find_if(storages.begin(), storages.end(),
                                  [&](const Storage& storage) { return storage.name == name; });
  REQUIRE(found != storages.end());
  return StorageId::of(static_cast<std::size_t>(found - storages.begin()));
}

Plan small_plan() {
  TwoEngines source(512_B);
  Plan plan = resident_plan(two_layers, 64, source);
  plan.name = "min-pcie";
  plan.pinned = Pinned::all_nodes;
  PlanInputs& in = plan.inputs;
  in.stowage_version = "0.1.0";
  in.model_name = "two layers: \"quoted\"";
  in.model_options.seq = 128;
  in.model_options.arguments = {{"width", "64"}};
  // A card whose total no rounded text would give back, and every field away from its default.
  in.card = {.name = "a card: \"quoted\"",
             .architecture = "Turing",
             .compute_capability = 7.5,
             .sm_count = 40,
             .nvml_total = 8192_MiB,
             .cuda_total = 8100_MiB + 1_B,
             .total_source = "seen",
             .context = 101_MiB,
             .context_source = "rule",
             .memory_bandwidth = 3.2e11,
             .fp32_flops = 8.1e12,
             .tf32_flops = 1,
             .fp16_flops = 6.5e13,
             .h2d_bandwidth = 1.2e10,
             .d2h_bandwidth = 1.3e10,
             .pageable_bandwidth = 5e9,
             .pcie = "gen3 x16",
             .rate_source = "a table",
             .confidence = "low",
             .measurements = {{.runtime = Runtime::tensorflow,
                               .stack = {{12, 1}, ModuleLoading::eager, {2, 4}},
                               .context = 300_MiB,
                               .cublas = std::nullopt,
                               .cudnn = 0_B,
                               .source = "a log",
                               .calibrated = true}},
             .observed_totals = {{.nvml = std::nullopt, .cuda = 8090_MiB, .source = "a log"},
                                 {.nvml = 8192_MiB, .cuda = std::nullopt, .source = "another"}},
             .cudnn_device_json = "{\"deviceName\": \"lab\",\n \"deviceVer\": 750}\n",
             .by_rule = {"fp16", "sm_count"},
             .calibrated = {"fp32"}};
  in.card.memory = 8_GiB;
  in.card.professional = true;
  in.host = {.name = "desktop",
             .memory = 32_GiB,
             .pinned_limit = 16_GiB,
             .cpu_flops = 4e11,
             .memory_bandwidth = 4e10,
             .kernel_latency = 2e-6,
             .h2d_bandwidth = 1.1e10,
             .d2h_bandwidth = 1.25e10,
             .link_latency = 1e-5,
             .source = "configs/hosts/generic.yaml"};
  in.available = 12_GiB;
  in.budget = 8_MiB;
  KernelRates& kernels = plan.machine.processors[0].kernels.emplace();
  kernels.multiprocessors = 40;
  kernels.formats = {1e11, 2e12, 3e12, 1e13 / 3, 4e12};
  for (std::size_t i = 0; i < kernels.kinds.size(); ++i) {
    kernels.kinds[i] = {1.0 / static_cast<double>(i + 1), static_cast<double>(i)};
  }
  plan.nodes.back().processor = cpu_processor;
  plan.in(pinned_memory).push_back({storage_named(plan, "fc.weight"), {1, 2}, 256_B});
  plan.transfers.push_back({storage_named(plan, "fc.weight"), download_link, 2, 2});
  plan.totals.gpu_peak = 5000_B;
  plan.totals.arena = 6000_B;
  plan.totals.cost_seconds = 0.1;
  plan.totals.cost_lower_bound_seconds = 1.0 / 3;
  plan.totals.proved_optimal = true;
  plan.remarks = {"changes the training: batch_norm sees micro-batches"};
  return plan;
}

std::string error_of(const std::string& text) {
  const auto plan = read_plan(source_of(text));
  return plan ? "" : render(plan.error());
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), with);
}

}  // namespace

TEST_CASE("a plan reads back as it was written") {
  const Plan made = small_plan();
  const std::string text = write_plan(made);
  const auto plan = read_plan(source_of(text));
  if (!plan) FAIL(render(plan.error()));
  CHECK(write_plan(*plan) == text);
  CHECK(plan->inputs.model_text == made.inputs.model_text);
  CHECK(plan->inputs.model_options.seq == 128);
  CHECK(*plan->step.graph == *made.step.graph);
  CHECK(plan->step.storage_bytes == made.step.storage_bytes);
  CHECK(plan->step.batch == 64);
  CHECK(step_hash(plan->step) == made.inputs.step_hash);
  CHECK(plan->machine == made.machine);
  CHECK(plan->nodes[0].engine == "rule");
  CHECK(plan->nodes.back().processor == cpu_processor);
  CHECK(plan->in(pinned_memory).back().storage == storage_named(made, "fc.weight"));
  CHECK(plan->transfers.back().link == download_link);
  CHECK(plan->totals.cost_lower_bound_seconds == 1.0 / 3);
  CHECK(plan->totals.proved_optimal);
  CHECK(plan->remarks == made.remarks);
}

TEST_CASE("windows of the CPU's nodes come back, those of one step alone are not written") {
  Plan made = small_plan();
  const auto steps = static_cast<std::int32_t>(made.nodes.size());
  made.nodes.back().window = {steps - 1, steps};
  CHECK(write_plan(made).find("windows") == std::string::npos);
  made.nodes.back().window = {steps - 2, steps};
  const std::string text = write_plan(made);
  const std::string row =
      fmt::format("  {} {} {}\n", steps - 2, steps, made.step.graph->nodes.back().name);
  const std::string table = "windows: |\n  # begin end node\n" + row;
  CHECK(text.find(table + "residences: |\n") != text.npos);
  const auto plan = read_plan(source_of(text));
  REQUIRE(plan.has_value());
  CHECK(plan->nodes.back().window == StepRange{steps - 2, steps});
  CHECK(plan->nodes.front().window.empty());
  CHECK(write_plan(*plan) == text);

  const auto error_with = [&](const std::string& changed) {
    return error_of(replaced(text, table, "windows: |\n" + changed));
  };
  CHECK(error_with(row + row).find("is there twice or out of order") != text.npos);
  CHECK(error_with("  0 1 nothing\n").find("the step has no node 'nothing'") != text.npos);
  CHECK(error_with(fmt::format("  0 {} x\n", steps + 1))
            .find(fmt::format("the end must be from 0 to {}", steps)) != text.npos);
  CHECK(error_with(fmt::format("  0 1 {}\n", made.step.graph->nodes.back().name))
            .find(fmt::format("a window from 0 to 1 does not contain step {} of its node",
                              steps - 1)) != text.npos);
  CHECK(error_with(fmt::format("  0 2 {}\n", made.step.graph->nodes.front().name))
            .find("is not on the CPU") != text.npos);
  // For a node on an unknown processor only that is reported.
  const std::string nowhere = error_of(replaced(text, "\n  cpu ", "\n  cqu "));
  CHECK(nowhere.find("there is no processor 'cqu'") != text.npos);
  CHECK(nowhere.find("is not on the CPU") == text.npos);
}

TEST_CASE("what was measured of a plan's nodes comes back, of a processor all of them or none") {
  Plan made = small_plan();
  made.machine.measured_on = "cuda: \"Lab\"";
  std::vector<double>& seconds = made.machine.processors[0].node_seconds;
  for (std::size_t i = 0; i < made.nodes.size(); ++i) {
    seconds.push_back(1.0 / static_cast<double>(i + 3));
  }
  const std::string text = write_plan(made);
  const std::string first = fmt::format("  gpu {} {}\n", 1.0 / 3, made.kernel(NodeId{0}).name);
  CHECK(text.find("seconds: |\n  # processor seconds node\n" + first) != text.npos);
  const auto plan = read_plan(source_of(text));
  if (!plan) FAIL(render(plan.error()));
  CHECK(plan->machine == made.machine);
  CHECK(write_plan(*plan) == text);

  const auto error_with = [&](const std::string& rows) {
    return error_of(replaced(text, first, rows));
  };
  CHECK(error_with("").find("is out of the step's order") != text.npos);
  CHECK(error_with("  gpu -1 x\n").find("the seconds must be") != text.npos);
  CHECK(error_with("  gpu 1 nothing\n").find("the step has no node 'nothing'") != text.npos);
  CHECK(error_with("  tpu 1 x\n").find("there is no processor 'tpu'") != text.npos);
  CHECK(error_with(first + fmt::format("  cpu 1 {}\n", made.kernel(NodeId{0}).name))
            .find(fmt::format("'cpu' has the seconds of 1 nodes of {}", made.nodes.size())) !=
        text.npos);
  const std::string where = fmt::format("  measured_on: {}\n", "\"cuda: \\\"Lab\\\"\"");
  CHECK(error_of(replaced(text, where, ""))
            .find("the plan's machine does not say where this was measured_on") != text.npos);
}

TEST_CASE("card and host come back in every field") {
  const std::string text = write_plan(small_plan());
  const auto plan = read_plan(source_of(text));
  REQUIRE(plan.has_value());
  const Card& card = plan->inputs.card;
  const Card expected = small_plan().inputs.card;
  CHECK(card.name == expected.name);
  CHECK(card.cuda_total == 8100_MiB + 1_B);
  CHECK(card.compute_capability == 7.5);
  CHECK(card.cudnn_device_json == expected.cudnn_device_json);
  CHECK(card.memory == 8_GiB);
  CHECK(card.professional);
  CHECK(card.by_rule == expected.by_rule);
  REQUIRE(card.observed_totals.size() == 2);
  CHECK(card.observed_totals[0].cuda == Bytes(8090_MiB));
  CHECK(card.observed_totals[0].nvml == std::nullopt);
  CHECK(card.observed_totals[1].nvml == Bytes(8192_MiB));
  CHECK(card.observed_totals[1].source == "another");
  REQUIRE(card.measurements.size() == 1);
  CHECK(card.measurements[0].stack == expected.measurements[0].stack);
  CHECK(card.measurements[0].context == Bytes(300_MiB));
  CHECK(card.measurements[0].cublas == std::nullopt);
  CHECK(plan->inputs.host.kernel_latency == 2e-6);
  CHECK(plan->inputs.host.source == "configs/hosts/generic.yaml");
  CHECK(plan->pinned == Pinned::all_nodes);
  CHECK(error_of(replaced(text, "      cuda: \"12.1\"", "      cuda: \"12\""))
            .find("'cuda' must be a version such as 12.1, not '12'") != text.npos);
}

TEST_CASE("every precision comes back") {
  for (int i = 0; i < static_cast<int>(precision_names().size()); ++i) {
    Plan plan = small_plan();
    plan.inputs.model_options.precision = static_cast<Precision>(i);
    const std::string text = write_plan(plan);
    CHECK(text.find(fmt::format("\n  precision: {}\n", precision_names()[i])) != text.npos);
    const auto read = read_plan(source_of(text));
    REQUIRE(read.has_value());
    CHECK(read->inputs.model_options.precision == static_cast<Precision>(i));
  }
  CHECK(read_plan(source_of(write_plan(small_plan())))->inputs.model_options.precision ==
        std::nullopt);
}

TEST_CASE("a plan that was made from a step holds no description") {
  Plan plan = small_plan();
  plan.inputs.model_text.clear();
  const std::string text = write_plan(plan);
  CHECK(text.find("\nmodel:") == text.npos);
  const auto read = read_plan(source_of(text));
  REQUIRE(read.has_value());
  CHECK(read->inputs.model_text.empty());
  CHECK(write_plan(*read) == text);
}

TEST_CASE("the tables are one row a line, and list the nodes that are not as most are") {
  const std::string text = write_plan(small_plan());
  const std::size_t begin = text.find("\n---\n") + 1;
  const std::string tables = text.substr(begin, text.find("\n---\n", begin) - begin);
  CHECK(
      tables.starts_with("---\nnodes: |\n"
                         "  # processor workspace workspace_offset node | engine\n"
                         "  gpu 512 "));
  CHECK(tables.find(" conv.forward | rule\n") != text.npos);
  CHECK(tables.find("fc.forward") == text.npos);
  CHECK(tables.find("\n  cpu 0 0 update.") != text.npos);
  CHECK(tables.find("\nresidences: |\n  # memory begin end offset storage\n  gpu 0 ") != text.npos);
  CHECK(tables.find("\n  pinned 1 2 256 fc.weight\n") != text.npos);
  CHECK(
      tables.ends_with("\ntransfers: |\n  # link begin end storage\n"
                       "  h2d 0 0 image\n  h2d 0 0 label\n  d2h 2 2 fc.weight"));
}

TEST_CASE("any description comes back byte for byte") {
  std::mt19937 random(9);
  const Plan made = small_plan();
  constexpr std::string_view alphabet = " \n\n\t-#:|'\"\\ab\r\x01{}[]&*!%@`>~\xc3\xa9";
  for (int round = 0; round < 300; ++round) {
    Plan plan = made;
    std::string& text = plan.inputs.model_text;
    text.clear();
    for (std::size_t n = 1 + random() % 30; n > 0; --n) {
      const std::size_t at = random() % (alphabet.size() - 1);
      text += at + 2 == alphabet.size() ? std::string(alphabet.substr(at, 2))
                                        : std::string(1, alphabet[at]);
    }
    const auto read = read_plan(source_of(write_plan(plan)));
    if (!read) FAIL(render(read.error()));
    CHECK(read->inputs.model_text == text);
  }
}

TEST_CASE("mistakes in a plan are shown at their place") {
  const std::string text = write_plan(small_plan());
  CHECK(error_of("[1, 2]") ==
        "p.yaml:1:1: error: this is not a plan: it lacks 'stowage_plan'\n  [1, 2]\n  ^\n");
  CHECK(error_of("stowage_plan: 7\n") ==
        "p.yaml:1:15: error: this program reads plans of format 2, not '7'\n"
        "  stowage_plan: 7\n                ^\n");
  // For the text with one place replaced: the message at that place, the line, the caret.
  const auto error_at = [&](const std::string& what, const std::string& with, int column,
                            const std::string& message, int length = 1) {
    const std::string mutant = replaced(text, what, with);
    const std::size_t at = mutant.find(with);
    const std::size_t begin = mutant.rfind('\n', at) + 1;
    const std::string caret = "^" + std::string(static_cast<std::size_t>(length) - 1, '~');
    CHECK(error_of(mutant) ==
          fmt::format("p.yaml:{}:{}: error: {}\n  {}\n  {:>{}}{}\n",
                      1 + std::count(mutant.begin(), mutant.begin() + static_cast<int>(at), '\n'),
                      column, message, mutant.substr(begin, mutant.find('\n', at) - begin), "",
                      column - 1, caret));
  };
  error_at("  batch: 64", "  batch: 0", 10,
           "'batch' must be an integer from 1 to 4611686018427387904, not '0'");
  error_at("pinned 1 2 256 fc", "pinned 1 99 256 fc", 12,
           fmt::format("the end must be from 0 to {}", small_plan().nodes.size()), 2);
  error_at("pinned 1 2 256 fc", "pinned 1 1 256 fc", 12, "a residence from 1 to 1");
  error_at("pinned 1 2 256 fc", "pined 1 2 256 fc", 3, "there is no memory 'pined'", 5);
  error_at("h2d 0 0 image", "h2d 0 0 imago", 11, "the step has no storage 'imago'", 5);
  error_at("d2h 2 2 fc", "d2h 2 1 fc", 9, "a transfer from 2 to 1");
  error_at("d2h 2 2 fc", "d2d 2 2 fc", 3, "there is no link 'd2d'", 3);
  error_at("cpu 0 0 update", "cpu 0 0 upgate", 11, "the step has no node 'upgate.fc.bias'", 14);
  error_at("memory: pinned", "memory: pinnet", 15,
           "'memory' must be the name of one of the memories, not 'pinnet'", 6);
  error_at("  batch: 64", "  batch: 4611686018427387904", 10,
           "batch 4611686018427387904 makes 'image' (input) larger than 32.0 PiB", 19);
  CHECK(error_of(text.substr(0, text.find("---\n"))).find("ends before its tables") !=
        std::string::npos);
  CHECK(error_of(text.substr(0, text.rfind("\n---\n"))).find("ends before its step") !=
        std::string::npos);
}

TEST_CASE("a mistake in a plan's step is shown at its line of the plan") {
  const std::string text = write_plan(small_plan());
  const std::string mutant =
      replaced(text, "\"convolution_forward\",\"forward\"", "\"convolution_forward\",\"foreward\"");
  const std::size_t at = mutant.find("\"foreward\"");
  const auto line = 1 + std::count(mutant.begin(), mutant.begin() + static_cast<int>(at), '\n');
  CHECK(error_of(mutant).starts_with(fmt::format("p.yaml:{}:", line)));
}

TEST_CASE("several mistakes are reported in one reading") {
  std::string text = write_plan(small_plan());
  text = replaced(text, "pinned: all nodes", "pinned: all");
  text = replaced(text, "  h2d_bytes", "  h2d_byte");
  const std::string errors = error_of(text);
  CHECK(errors.find("'pinned' must be nothing or computation or all nodes, not 'all'") !=
        std::string::npos);
  CHECK(errors.find("'totals' lacks 'h2d_bytes'") != std::string::npos);
  CHECK(errors.find("did you mean 'h2d_bytes'?") != std::string::npos);
}

TEST_CASE("no file makes the reader crash") {
  // A mutated plan that is accepted must read back as itself.
  std::mt19937 random(4);
  const std::string text = write_plan(small_plan());
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string mutant = text;
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % mutant.size();
      switch (random() % 4) {
        case 0:
          mutant[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          mutant.erase(at, 1 + random() % 40);
          break;
        case 2:
          mutant.insert(at, mutant.substr(random() % mutant.size(), random() % 40));
          break;
        default:
          mutant[at] = "0129-:|#\n "[random() % 10];
          break;
      }
    }
    const auto plan = read_plan(source_of(mutant));
    if (!plan) {
      CHECK(!plan.error().empty());
      continue;
    }
    ++accepted;
    const auto again = read_plan(source_of(write_plan(*plan)));
    CHECK(again.has_value());
    if (again) CHECK(write_plan(*again) == write_plan(*plan));
  }
  CHECK(accepted > 50);
  CHECK(accepted < 2900);
}
