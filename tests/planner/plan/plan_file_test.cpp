#include "planner/plan/plan_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "planner/assemble/assemble_plan.hpp"
#include "tests/support/small_steps.hpp"

using namespace stowage;

namespace {

SourceTextPtr source_of(std::string text) {
  return std::make_shared<const SourceText>(SourceText{"p.yaml", std::move(text)});
}

Plan small_plan() {
  Plan plan;
  plan.name = "min-pcie";
  plan.pinned = Pinned::all_nodes;
  PlanInputs& in = plan.inputs;
  in.stowage_version = "0.1.0";
  in.model_name = "two layers: \"quoted\"";
  in.model_text = "model: two\nlayers:\n  - linear: {out: 4}\n\n  # done\n";
  in.model_hash = "00ff";
  in.step_hash = "11ee";
  in.model_options.seq = 128;
  in.model_options.arguments = {{"width", "64"}};
  in.lowering.micro_batches = 2;
  // Every setting away from its default, so that one that is not written shows.
  in.lowering.optimizer = {.name = "adam",
                           .learning_rate = 1e-3,
                           .momentum = 0.5,
                           .nesterov = true,
                           .weight_decay = 0.1,
                           .beta1 = 0.8,
                           .beta2 = 0.99,
                           .epsilon = 1e-7,
                           .dampening = 0.25,
                           .amsgrad = true,
                           .centered = true,
                           .decoupled_weight_decay = true,
                           .smoothing = 0.75,
                           .learning_rate_decay = 0.125,
                           .momentum_decay = 0.01,
                           .decay_rate = 0.7,
                           .clip_threshold = 2,
                           .max_gradient_norm = 0,
                           .implementation = OptimizerImplementation::for_loop,
                           .master_weights = MasterWeights::weights_and_gradients};
  in.batch = 64;
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
             .cudnn_device_json = "{\"deviceName\": \"lab\",\n \"deviceVer\": 750}\n"};
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
  in.rates = {1e12, 3.6e11, 5e-6, 1e11, 2e10, 2e-6, 1.2e10, 1.3e10, 1e-5};
  in.available = 12_GiB;
  in.budget = 8_MiB;
  in.workspace_origin = "rule";
  plan.storages = {{"x", StorageClass::input, 100_B},
                   {"linear.weight", StorageClass::parameter, 4096_B},
                   {"a name with spaces", StorageClass::saved_auxiliary, 0_B}};
  plan.nodes = {{"linear.forward", Device::gpu, "cudnn 9.19.0 eng0 k2=12", 512_B, 4096_B},
                {"update.linear.weight", Device::cpu, "", 0_B, 0_B}};
  plan.gpu = {{StorageId{0}, {0, 1}, 0_B}, {StorageId{1}, {0, 2}, 256_B}};
  plan.host = {{StorageId{0}, {0, 1}, 0_B}, {StorageId{2}, {1, 2}, 256_B}};
  plan.transfers = {{StorageId{0}, Direction::h2d, 0, 0}, {StorageId{1}, Direction::d2h, 2, 2}};
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
  const std::string text = write_plan(small_plan());
  const auto plan = read_plan(source_of(text));
  if (!plan) FAIL(render(plan.error()));
  CHECK(write_plan(*plan) == text);
  CHECK(plan->inputs.model_text == small_plan().inputs.model_text);
  CHECK(plan->inputs.model_options.seq == 128);
  CHECK(plan->inputs.lowering == small_plan().inputs.lowering);
  CHECK(plan->inputs.rates == small_plan().inputs.rates);
  CHECK(plan->nodes[0].engine == "cudnn 9.19.0 eng0 k2=12");
  CHECK(plan->nodes[1].device == Device::cpu);
  CHECK(plan->storages[2].name == "a name with spaces");
  CHECK(plan->host[1].storage == StorageId{2});
  CHECK(plan->transfers[1].end == 2);
  CHECK(plan->totals.cost_lower_bound_seconds == 1.0 / 3);
  CHECK(plan->totals.proved_optimal);
  CHECK(plan->remarks == small_plan().remarks);
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

TEST_CASE("every precision and setting of a step comes back") {
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
  for (const StepSettings& step :
       {StepSettings{}, StepSettings{ZeroGrad::to_zero, 0, 0},
        StepSettings{ZeroGrad::to_none, 2, 0}, StepSettings{ZeroGrad::to_zero, 1, 3},
        StepSettings{.layout = TensorLayout::channels_last}}) {
    Plan plan = small_plan();
    plan.inputs.lowering.step = step;
    plan.inputs.lowering.convolutions = {
        .tf32 = step.augment == 0, .deterministic = step.augment == 1, .benchmark = true};
    plan.inputs.lowering.kernels = KernelSet::pytorch;
    plan.inputs.lowering.compute_capability = 7.5;
    plan.inputs.lowering.mode = Mode::inference;
    const auto read = read_plan(source_of(write_plan(plan)));
    REQUIRE(read.has_value());
    CHECK(read->inputs.lowering == plan.inputs.lowering);
  }
}

TEST_CASE("mistakes in a step's settings are shown at their place") {
  Plan plan = small_plan();
  plan.inputs.lowering.step = {ZeroGrad::to_zero, 1, 3};
  plan.inputs.model_options.precision = Precision::amp_bf16;
  std::string text = write_plan(plan);
  text = replaced(text, "zero_grad: to_zero", "zero_grad: never");
  text = replaced(text, "prefetch: 3", "prefetch: -3");
  text = replaced(text, "precision: amp-bf16", "precision: amp-bf15");
  const std::string errors = error_of(text);
  CHECK(errors.find("'zero_grad' must be to_none or to_zero") != std::string::npos);
  CHECK(errors.find("'prefetch' must be an integer from 0 to 1000") != std::string::npos);
  CHECK(errors.find("'precision' must be one of fp32, fp64") != std::string::npos);
}

TEST_CASE("the tables are one row a line") {
  const std::string text = write_plan(small_plan());
  CHECK(text.substr(text.find("---\n")) == R"(---
storages: |
  # class bytes name
  input 100 x
  parameter 4096 linear.weight
  saved_auxiliary 0 a name with spaces
nodes: |
  # device workspace workspace_offset name | engine
  gpu 512 4096 linear.forward | cudnn 9.19.0 eng0 k2=12
  cpu 0 0 update.linear.weight
gpu: |
  # begin end offset storage
  0 1 0 x
  0 2 256 linear.weight
host: |
  # begin end offset storage
  0 1 0 x
  1 2 256 a name with spaces
transfers: |
  # direction begin end storage
  h2d 0 0 x
  d2h 2 2 linear.weight
)");
}

TEST_CASE("any description comes back byte for byte") {
  std::mt19937 random(9);
  constexpr std::string_view alphabet = " \n\n\t-#:|'\"\\ab\r\x01{}[]&*!%@`>~\xc3\xa9";
  for (int round = 0; round < 300; ++round) {
    Plan plan = small_plan();
    std::string& text = plan.inputs.model_text;
    text.clear();
    for (std::size_t n = random() % 30; n > 0; --n) {
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
  // Of the text with one place replaced: the message at that place, the line, the caret.
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
  error_at("0 2 256 linear.weight", "0 3 256 linear.weight", 5, "the end must be from 0 to 2");
  error_at("0 2 256 linear.weight", "1 1 256 linear.weight", 5, "a residence from 1 to 1");
  error_at("h2d 0 0 x", "h2d 0 0 y", 11, "there is no storage 'y'");
  error_at("d2h 2 2 linear", "d2h 2 1 linear", 9, "a transfer from 2 to 1");
  error_at("parameter 4096", "parametre 4096", 3, "unknown class 'parametre'", 9);
  CHECK(error_of(text.substr(0, text.find("---\n"))).find("ends before its tables") !=
        std::string::npos);
}

TEST_CASE("several mistakes are told in one reading") {
  std::string text = write_plan(small_plan());
  text = replaced(text, "mode: train", "mode: training");
  text = replaced(text, "  h2d_bytes", "  h2d_byte");
  const std::string errors = error_of(text);
  CHECK(errors.find("'mode' must be train or inference") != std::string::npos);
  CHECK(errors.find("'totals' lacks 'h2d_bytes'") != std::string::npos);
  CHECK(errors.find("did you mean 'h2d_bytes'?") != std::string::npos);
}

TEST_CASE("no file makes the reader crash") {
  // What survives a mutation must still read back as itself.
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

TEST_CASE("a plan of 3,000 nodes is read fast") {
  RandomProblems random(1);
  ResidencyProblem problem = random.problem(3000, 100);
  for (std::int32_t i = 0; i < 3000; ++i) {  // neighbours' activations, swapped half the time
    const std::int32_t last = std::min(i + 1 + static_cast<std::int32_t>(random.below(900)), 2999);
    Item item{fmt::format("layer{}.activation", i), Bytes(1024), {{i, false, true}}};
    if (last > i) item.touches.push_back({last, true, false});
    problem.items.push_back(item);
  }
  const SizedStep step = step_of(problem);
  Plan plan = assemble_plan(step, problem, random.placement(problem), {1_MiB, 0});
  plan.inputs = small_plan().inputs;
  const SourceTextPtr text = source_of(write_plan(plan));
  const auto start = std::chrono::steady_clock::now();
  const auto read = read_plan(text);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  REQUIRE(read.has_value());
  CHECK(write_plan(*read) == text->text);
  MESSAGE(text->text.size() << " bytes in "
                            << std::chrono::duration<double, std::milli>(elapsed).count() << " ms");
}
