// The interface that is installed. That it builds outside the project is install_test.cmake's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stowage/stowage.hpp>
#include <string>

#include "answers/sizing/check.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

using testing::source_path;
using testing::TemporaryFolder;

namespace {

/// The project's catalogues, as a user names others than the installed ones.
void use_shipped_catalogues() { setenv("STOWAGE_CONFIGS", source_path("/configs").c_str(), 1); }

StepSpec shipped(const std::string& model) {
  use_shipped_catalogues();
  return {.model = {.source = model}, .ask_cudnn = false};
}

constexpr std::int64_t gib = std::int64_t{1} << 30;

}  // namespace

TEST_CASE("the library's rows add up to the answer of the room below") {
  const auto fit = ask(FitQuestion{.step = shipped("resnet18"), .gpu = {.name = "t4"}, .batch = 8});
  REQUIRE(fit);
  const MemoryPeak& peak = fit->peak;
  std::int64_t tensors = 0, all = 0, listed = 0;
  for (const MemoryRow& row : peak.classes) tensors += row.bytes;
  for (const MemoryRow& row : peak.runtime) all += row.bytes;
  for (const TensorRow& row : peak.tensors) listed += row.bytes;
  CHECK(tensors == peak.tensor_bytes);
  CHECK(listed == peak.tensor_bytes);
  CHECK(tensors + all == peak.device_bytes);
  CHECK(peak.headroom_bytes == peak.available_bytes - peak.device_bytes);
  CHECK(fit->fits == (peak.headroom_bytes >= 0));
  CHECK(peak.workspaces == "rule");
  CHECK_FALSE(fit->largest_batch);
  StepQuestion step;
  step.model = {.source = "resnet18", .configs = {source_path("/configs")}};
  step.asks_cudnn = false;
  const auto below = answer(CheckQuestion{
      .step = step, .card = {.name = "t4", .configs = step.model.configs}, .batch = 8});
  REQUIRE(below);
  CHECK(below->report.device_bytes.count() == peak.device_bytes);
}

TEST_CASE("what does not fit comes with the largest batch that does") {
  const auto no = ask(
      FitQuestion{.step = shipped("mnist-cnn"), .gpu = {.memory_bytes = gib}, .batch = 100'000});
  REQUIRE(no);
  CHECK_FALSE(no->fits);
  REQUIRE(no->largest_batch);
  const auto largest =
      ask(LargestBatchQuestion{.step = shipped("mnist-cnn"), .gpu = {.memory_bytes = gib}});
  REQUIRE(largest);
  CHECK(largest->largest == *no->largest_batch);
  CHECK(largest->recommended <= largest->largest);
  REQUIRE_FALSE(largest->curve.empty());
  CHECK(largest->curve.back().batch == largest->largest);
}

TEST_CASE("mistakes come back as messages, with their place or the field's name") {
  const auto unknown = ask(FitQuestion{.step = shipped("vgg17"), .gpu = {.name = "t4"}});
  REQUIRE_FALSE(unknown);
  CHECK(shown(unknown.error()) == "error: there is no model 'vgg17'\n  did you mean 'vgg11'?\n");
  const auto misspelt = ask(
      FitQuestion{.step = shipped(source_path("/tests/bad/misspelt.yaml")), .gpu = {.name = "t4"}});
  REQUIRE_FALSE(misspelt);
  REQUIRE(misspelt.error().size() == 3);
  CHECK(misspelt.error()[0].line == 7);
  CHECK(misspelt.error()[0].column == 27);
  CHECK(misspelt.error()[0].hint == "did you mean 'channels'?");
  StepSpec step = shipped("mlp");
  step.runtime = "pytroch";
  const auto runtime = ask(FitQuestion{.step = step, .gpu = {.name = "t4"}});
  REQUIRE_FALSE(runtime);
  CHECK(runtime.error().front().text ==
        "`runtime` 'pytroch' is none of pytorch, tensorflow, theano, stowage and ideal");
  const auto no_card = ask(FitQuestion{.step = shipped("mlp"), .gpu = {}});
  REQUIRE_FALSE(no_card);
  CHECK(no_card.error().front().text == "a card is missing: its name, or how much memory it has");
  step = shipped("mlp");
  step.optimizer = "adamv";
  const auto optimizer = ask(FitQuestion{.step = step, .gpu = {.name = "t4"}});
  REQUIRE_FALSE(optimizer);
  CHECK(optimizer.error().front().text == "there is no optimizer 'adamv'");
  step.optimizer = "";
  step.gpus = 0;
  CHECK_FALSE(ask(FitQuestion{.step = step, .gpu = {.name = "t4"}}));
  step.gpus = 1;
  step.model.precision = "fp7";
  CHECK_FALSE(ask(FitQuestion{.step = step, .gpu = {.name = "t4"}}));
}

TEST_CASE("numbers out of range are refused before anything is read") {
  const StepSpec step = shipped("no-such-model");
  const GpuSpec t4{.name = "t4"};
  const auto text = [](const auto& answer) {
    REQUIRE_FALSE(answer);
    return answer.error().front().text;
  };
  const std::string range = " is out of range; it takes 1 to 1000000000";
  CHECK(text(ask(FitQuestion{.step = step, .gpu = t4, .batch = 0})) == "`batch` 0" + range);
  CHECK(text(ask(FitQuestion{.step = step, .gpu = t4, .batch = -7})) == "`batch` -7" + range);
  CHECK(text(ask(FitTableQuestion{.step = step, .models = {"mlp"}, .gpus = "t4", .batch = 0})) ==
        "`batch` 0" + range);
  CHECK(text(ask(ServingFitQuestion{.step = step, .gpu = t4, .context_length = 8, .users = 0})) ==
        "`users` 0" + range);
  CHECK(text(ask(LargestBatchQuestion{.step = step, .gpu = t4, .margin_bytes = -1})) ==
        "`margin` is below 0");
  CHECK(text(ask(PlacementQuestion{.step = step, .gpu = t4, .budget_bytes = -1})) ==
        "`budget` is below 0");
  const double never = std::nan("");
  CHECK(text(ask(PlacementQuestion{.step = step, .gpu = t4, .time_limit_seconds = never})) ==
        "`time_limit` takes 0.01 to 86400 seconds");
  CHECK(text(ask(PlacementQuestion{.step = step, .gpu = t4, .effort = 0})) ==
        "`effort` takes 1 to 1024");
  CHECK(text(describe({.source = "mlp"}, 0)) == "`batch` 0" + range);
  CHECK(text(describe({.source = "mlp", .seq = 0})) == "`seq` 0" + range);
}

TEST_CASE("serving has the cache that suits the format, and refuses what is stored by none") {
  ServingFitQuestion question{.step = shipped(source_path("/tests/hf/opt-125m/config.json")),
                              .gpu = {.name = "t4"},
                              .context_length = 64,
                              .users = 2};
  const auto paged = ask(question);
  REQUIRE(paged);
  CHECK(paged->cache == "paged");
  CHECK(paged->fits);
  // 12 layers, keys and values of 768 numbers in the file's float16, 64 tokens, 2 users.
  CHECK(paged->cache_bytes == std::int64_t{12} * 2 * 768 * 2 * 64 * 2);
  question.kv_format = "int4";
  const auto packed = ask(question);
  REQUIRE(packed);
  CHECK(packed->cache == "quantized");
  question.cache = "paged";
  CHECK_FALSE(ask(question));
  question.context_length = 0;
  CHECK_FALSE(ask(question));
}

TEST_CASE("a table has a row a model and a card, also of a model that is not there") {
  const auto table = ask(FitTableQuestion{
      .step = shipped(""), .models = {"mlp", "no-such-model"}, .gpus = "t4,rtx3090", .batch = 4});
  REQUIRE(table);
  REQUIRE(table->rows.size() == 3);
  CHECK(table->rows[0].fits);
  CHECK(table->rows[1].gpu == "GeForce RTX 3090");
  CHECK_FALSE(table->rows[2].has_answer);
  REQUIRE_FALSE(table->notes.empty());
  CHECK(table->notes.front().kind == Message::Kind::error);
}

TEST_CASE("a plan is written as a file that the validator recounts") {
  const auto placement = ask(PlacementQuestion{
      .step = shipped("mnist-cnn"), .gpu = {.memory_bytes = 600 << 20}, .batch = 2048});
  REQUIRE(placement);
  REQUIRE(placement->chosen);
  const PlacementPlan& plan = placement->plans[*placement->chosen];
  CHECK(plan.arena_bytes <= placement->budget_bytes);
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  std::ofstream(path) << placement->file;
  const auto proof = recount_plan(path);
  REQUIRE(proof);
  CHECK(proof->valid);
  CHECK(proof->checks.size() > 20);
}

TEST_CASE("facts and names come from the catalogues") {
  const auto facts = describe(shipped("vgg16").model, 2);
  REQUIRE(facts);
  CHECK(facts->parameters == 138'357'544);  // torchvision's
  CHECK(facts->peak_tensor_bytes > facts->parameter_bytes);
  REQUIRE_FALSE(facts->layers.empty());
  const auto classifier = std::ranges::find(facts->layers, "fc3", &LayerFacts::name);
  REQUIRE(classifier != facts->layers.end());
  CHECK(classifier->output == std::vector<std::int64_t>{2, 1000});
  const auto models = model_names();
  REQUIRE(models);
  CHECK(models->size() == 99);
  const auto gpus = gpu_names();
  REQUIRE(gpus);
  CHECK(gpus->size() == 247);
  CHECK_FALSE(library_version().empty());
}

}  // namespace stowage
