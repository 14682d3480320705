// Plans of serving: prefill and decode as one step, in which weights and caches have one home each.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "answers/exporting/export.hpp"
#include "answers/planning/plan.hpp"
#include "estimator/serving/served_round.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/plan/two_sides.hpp"
#include "tests/answers/exporting/export_questions.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

/// Two layers of Llama 3.2 1B, served to four users on a card of that size.
PlanQuestion served(Bytes total) {
  const ExportQuestion small = testing::small_llama(ExportForm::llama_cpp);
  PlanQuestion question{.step = small.step, .stowage_version = "TEST"};
  question.step.model.options = {.arguments = {{"layers", "2"}}, .precision = Precision::bf16};
  question.step.process.usual_runtime = Runtime::pytorch;
  question.card = CardQuestion{.cuda_total = total, .configs = small.card->configs};
  question.serving = ServingSettings{.context_length = 4096, .users = 4, .cache_is_default = true};
  return question;
}

PlanAnswer planned(const PlanQuestion& question) {
  auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  REQUIRE_MESSAGE(found->chosen, (found->why_none.empty() ? "" : render(found->why_none)));
  return *std::move(found);
}

const Plan& chosen(const PlanAnswer& found) { return found.plans[*found.chosen]; }

/// Whether whatever of `storage` lies on the GPU was uploaded there, and so came from its home.
bool comes_from_host(const Plan& plan, StorageId storage) {
  return std::ranges::all_of(residences_in(plan, MemoryKind::device), [&](const Residence& there) {
    if (there.storage != storage) return true;
    return std::ranges::any_of(plan.transfers, [&](const Transfer& transfer) {
      return transfer.storage == storage && transfer.begin == there.steps.begin &&
             direction_of(plan, transfer) == Direction::h2d;
    });
  });
}

std::set<std::string> throughout(const Plan& plan) {
  std::set<std::string> names;
  const std::vector<bool> resident = resident_throughout(plan);
  for (std::size_t i = 0; i < resident.size(); ++i) {
    const Storage& storage = plan.step.graph->storages[i];
    if (resident[i] && storage.persistence == Persistence::persistent) names.insert(storage.name);
  }
  return names;
}

Bytes lasting_bytes(const Plan& plan) {
  Bytes bytes;
  for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
    const bool lasts = plan.step.graph->storages[i].persistence == Persistence::persistent;
    if (lasts) bytes += plan.bytes(StorageId::of(i));
  }
  return bytes;
}

/// What llama.cpp gets of the plan.
ExportAnswer exported(const Plan& plan) {
  const testing::TemporaryFolder folder;
  ExportQuestion question{.form = ExportForm::llama_cpp, .written_by = "stowage TEST"};
  question.step.model.source = folder.file("served.yaml", write_plan(plan));
  auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  return *std::move(found);
}

}  // namespace

TEST_CASE("a served model that fits lies on the GPU in both passes") {
  const PlanAnswer found = planned(served(8_GiB));
  const Plan& plan = chosen(found);
  CHECK(plan.name == "all-gpu");
  CHECK(found.took_all_gpu);
  CHECK(plan.totals.h2d == Bytes(2048LL * 8));  // prefill's tokens
  REQUIRE(found.serving);
  CHECK(found.serving->prefill_pass.tokens == 2048);
  CHECK(found.serving->prefill_pass.batch == 1);
  CHECK(found.serving->decode_pass.tokens == 1);
  CHECK(found.serving->decode_pass.batch == 4);
  CHECK(found.serving->decode_pass.past == 4095);
  REQUIRE(found.decode);
  // With everything on the GPU the bound is met.
  CHECK(found.decode->step_seconds == doctest::Approx(*found.decode->step_lower_bound_seconds));
  CHECK(found.decode->step_seconds < plan.totals.step_seconds);
}

TEST_CASE("weights and caches are there once for both passes") {
  const Plan plan = chosen(planned(served(8_GiB)));
  // 2048 x 4096 x 2 layers: keys and values of 8 heads of 64, of four users, in bf16.
  const std::int64_t cache = std::int64_t{2} * 2 * 4 * 4096 * 8 * 64 * 2;
  // Llama 3.2 1B has 60,821,504 parameters a block, and 262,668,288 outside, tied.
  const std::int64_t parameters = (std::int64_t{2} * 60'821'504 + 262'668'288) * 2;
  const std::int64_t lasting = lasting_bytes(plan).count();
  CHECK(lasting >= cache + parameters);
  CHECK(lasting < cache + parameters + 8192);  // the tables of rotary embeddings
}

TEST_CASE("without room for all of it each weight and each cache keeps one home") {
  for (const Bytes total : {1100_MiB, 900_MiB, 700_MiB}) {
    CAPTURE(total.count());
    const PlanAnswer found = planned(served(total));
    const Plan& plan = chosen(found);
    CHECK(plan.name != "all-gpu");
    CHECK(!found.took_all_gpu);
    const std::set<std::string> on_gpu = throughout(plan);
    std::size_t on_host = 0;
    for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
      const Storage& storage = plan.step.graph->storages[i];
      const bool lasts = storage.persistence == Persistence::persistent;
      if (!lasts || on_gpu.contains(storage.name)) continue;
      CAPTURE(storage.name);
      CHECK(comes_from_host(plan, StorageId::of(i)));
      ++on_host;
    }
    CHECK(on_host > 0);
    if (!found.decode) continue;
    CHECK(found.decode->step_seconds >= *found.decode->step_lower_bound_seconds * (1 - 1e-9));
    CHECK(found.decode->budget.bytes <= plan.inputs.budget.bytes);
  }
}

TEST_CASE("a plan's file says what is served") {
  const Plan plan = chosen(planned(served(900_MiB)));
  const auto again =
      read_plan(std::make_shared<const SourceText>(SourceText{"p", write_plan(plan)}));
  REQUIRE_MESSAGE(again, render(again.error()));
  REQUIRE(again->inputs.serving);
  CHECK(again->inputs.serving->context_length == 4096);
  CHECK(again->inputs.serving->users == 4);
  CHECK(again->inputs.serving->cache == CacheKind::paged);
  CHECK(again->inputs.serving->prefill_chunk == 2048);
  CHECK(write_plan(*again) == write_plan(plan));
}

TEST_CASE("a cache that each step makes anew has no plan") {
  PlanQuestion question = served(8_GiB);
  question.serving->cache = CacheKind::dynamic;
  question.serving->cache_is_default = false;
  const auto found = answer(question);
  REQUIRE(!found);
  CHECK(found.error().front().message ==
        "each step makes its cache 'layers.0.attention.cache.keys' anew, so that "
        "no plan of two passes has a place for it");
  CHECK(found.error().front().hint == "`cache` paged and static have one place for all passes");
}

TEST_CASE("the user's pins hold in both passes") {
  PlanQuestion question = served(8_GiB);
  auto pin = parse_device_pin("layers.1.*", "cpu", {});
  REQUIRE(pin);
  question.pins.pins.push_back(*pin);
  const Plan plan = chosen(planned(question));
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool is_pinned =
        plan.step.graph->layer(plan.step.graph->nodes[i].op).starts_with("layers.1.");
    if (is_pinned) CHECK(device_of(plan, plan.nodes[i]) == Device::cpu);
  }
}

TEST_CASE("llama.cpp: a plan with everything on the GPU overrides nothing") {
  const ExportAnswer found = exported(chosen(planned(served(8_GiB))));
  CHECK(found.of_plan);
  CHECK(found.body == R"(LLAMA_ARGS=(
  -ngl 3
  -c 16384
  -np 4
  -b 2048
  -ub 2048
  --cache-type-k bf16
  --cache-type-v bf16
  -fa on
  -fit off
)
)");
}

TEST_CASE("llama.cpp: what a plan has on the host is overridden, and what then fits is said") {
  for (const Bytes total : {900_MiB, 800_MiB, 700_MiB}) {
    CAPTURE(total.count());
    const ExportAnswer found = exported(chosen(planned(served(total))));
    CHECK(found.body.find("  -ngl 3\n") != std::string::npos);
    REQUIRE(found.verdict());
    CHECK(found.fits());
    CHECK(found.verdict()->device_bytes <= found.verdict()->available_bytes);
  }
}

TEST_CASE("llama.cpp: each weight that a plan has on the host is named in GGUF's words") {
  PlanQuestion question = served(8_GiB);
  for (const char* pattern : {"layers.1.down_proj.weight", "layers.0.q_proj.weight"}) {
    const auto pin = parse_device_pin(pattern, "cpu", {});
    REQUIRE(pin);
    question.pins.pins.push_back(*pin);
  }
  const ExportAnswer found = exported(chosen(planned(question)));
  const std::string overridden = R"('^blk\.(0)\.(attn_q)\.=CPU,^blk\.(1)\.(ffn_down)\.=CPU')";
  CHECK_MESSAGE(found.body.find("  --override-tensor " + overridden + "\n") != std::string::npos,
                found.body);
  CHECK(found.fits());
}

TEST_CASE("llama.cpp: the weights of all experts together have names of their own") {
  PlanQuestion question = served(16_GiB);
  question.step.model.source = "mixtral-8x7b";
  const auto pin = parse_device_pin("layers.1.mlp.gate_up_proj", "cpu", {});
  REQUIRE(pin);
  question.pins.pins.push_back(*pin);
  const ExportAnswer found = exported(chosen(planned(question)));
  const std::string overridden =
      R"('^blk\.(1)\.(ffn_gate_exps|ffn_gate_up_exps|ffn_up_exps)\.=CPU')";
  CHECK_MESSAGE(found.body.find("  --override-tensor " + overridden + "\n") != std::string::npos,
                found.body);
}

TEST_CASE("llama.cpp takes no plan of one step") {
  PlanQuestion question = served(8_GiB);
  question.serving.reset();
  question.step.wishes.mode = Mode::inference;
  question.step.model.options.seq = 64;
  const Plan plan = chosen(planned(question));
  const testing::TemporaryFolder folder;
  ExportQuestion asked{.form = ExportForm::llama_cpp};
  asked.step.model.source = folder.file("step.yaml", write_plan(plan));
  const auto found = answer(asked);
  REQUIRE(!found);
  CHECK(found.error().front().message ==
        "llama.cpp serves, and this plan is of one step without a cache");
}

}  // namespace stowage
