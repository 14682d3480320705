// Questions asked as another program asks them: no command line, no text.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "answers/planning/plan.hpp"
#include "answers/question/question_error.hpp"
#include "answers/sizing/batch.hpp"
#include "answers/sizing/check.hpp"
#include "answers/sizing/largest_value.hpp"
#include "answers/sizing/serving.hpp"
#include "answers/sizing/summary.hpp"
#include "answers/table/table.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

using testing::source_path;
using testing::TemporaryFolder;

namespace {

ConfigDirectory configs() { return {source_path("/configs")}; }

StepQuestion step_of(const std::string& model) {
  StepQuestion step;
  step.model.source = model;
  step.model.configs = configs();
  step.asks_cudnn = false;
  return step;
}

CardQuestion card_of(Bytes total) { return {.cuda_total = total, .configs = configs()}; }

/// A configuration that says that its weights on disk are quantised.
std::string gptq_configuration(const TemporaryFolder& folder) {
  std::ifstream file(source_path("/tests/hf/opt-125m/config.json"));
  std::ostringstream text;
  text << file.rdbuf();
  std::string changed = text.str();
  changed.insert(changed.find('{') + 1,
                 "\"no_such_key\": 1, \"quantization_config\": {\"quant_method\": \"gptq\", "
                 "\"bits\": 8},");
  std::string path = folder.path("config.json");
  std::ofstream(path) << changed;
  return path;
}

/// The reader's warning of the key, and the note of the weights' layout.
bool tells_of_configuration(const Diagnostics& notes) {
  const auto has = [&](Severity severity, std::string_view text) {
    return std::ranges::any_of(notes, [&](const Diagnostic& note) {
      return note.severity == severity && note.message.find(text) != std::string::npos;
    });
  };
  return has(Severity::warning, "'no_such_key' is no key of OPTConfig") &&
         has(Severity::note,
             "as its quantization_config says: 72 linear layers in GPTQ, 8 bits, groups of 128");
}

}  // namespace

TEST_CASE("a check and a search for the batch agree about the largest batch") {
  const auto largest = answer(BatchQuestion{.step = step_of("mnist-cnn"), .card = card_of(1_GiB)});
  REQUIRE(largest);
  REQUIRE(largest->report.largest > 0);
  const auto at = [&](std::int64_t batch) {
    const auto found =
        answer(CheckQuestion{.step = step_of("mnist-cnn"), .card = card_of(1_GiB), .batch = batch});
    REQUIRE(found);
    CHECK(found->verdict().fits == found->report.fits);
    CHECK(found->verdict().device_bytes == found->report.device_bytes);
    return *found;
  };
  CHECK(at(largest->report.largest).report.fits);
  const CheckAnswer above = at(largest->report.largest + 1);
  CHECK_FALSE(above.report.fits);
  REQUIRE(above.cures);
  CHECK(above.cures->largest.batch == largest->report.largest);
  REQUIRE(above.cures->plan);
  CHECK(above.cures->plan->runtime == executed_runtime);
  CHECK(largest->verdict().device_bytes == largest->report.at_recommended->device_bytes);
}

TEST_CASE("a mistake in a question has the question's place and names the field") {
  CheckQuestion question{.step = step_of("mnist-cnn"), .card = card_of(1_GiB), .batch = 1};
  question.eval_batch = 8;
  question.step.wishes.mode = Mode::inference;
  const auto refused = answer(question);
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()) ==
        "<question>: error: `eval_batch` is an evaluation beside training\n"
        "  without training, give its size as `batch`\n");
}

TEST_CASE("a setting that the runtime does not serve is refused by its record") {
  CheckQuestion question{.step = step_of("mnist-cnn"), .card = card_of(1_GiB), .batch = 1};
  question.step.process.runtime = Runtime::theano;
  question.step.process.pools.growth = true;
  question.step.wishes.parallel.gpus = 2;
  const auto refused = answer(question);
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()) ==
        "<question>: error: `gpus` is not of `runtime` theano\n"
        "<question>: error: `memory_growth` is for `runtime` tensorflow, not for theano\n");
}

TEST_CASE("every question about a model that serves passes on the model's warnings") {
  const TemporaryFolder folder;
  StepQuestion step = step_of(gptq_configuration(folder));
  const ServingSettings serving{.context_length = 64, .users = 2, .cache_is_default = true};
  StepQuestion inference = step;
  inference.wishes.mode = Mode::inference;
  const auto check = answer(CheckQuestion{.step = inference, .card = card_of(8_GiB), .batch = 1});
  REQUIRE(check);
  CHECK(tells_of_configuration(check->notes));
  const auto served = answer(ServingQuestion{step, card_of(8_GiB), serving});
  REQUIRE(served);
  CHECK(served->fits());
  CHECK(tells_of_configuration(served->notes));
  const auto users = answer(LargestValueQuestion{
      .step = step, .card = card_of(2_GiB), .of = LargestOf::users, .serving = serving});
  REQUIRE(users);
  CHECK(users->found.largest.value > 0);
  CHECK(tells_of_configuration(users->notes));
  CHECK(users->step.model == served->step.model);
  const std::string source = step.model.source;
  for (const TableCell& cell :
       {TableCell(TableAtBatch{1}), TableCell(TableOfServing{serving}),
        TableCell(TableOfValues{.of = LargestOf::users, .serving = serving})}) {
    const auto table = answer(TableQuestion{
        .step = inference, .models = {source}, .cards = card_of(8_GiB), .cell = cell});
    REQUIRE(table);
    CHECK(table->rows.size() == 1);
    CHECK(tells_of_configuration(table->notes));
  }
}

TEST_CASE("a plan of a budget that is too small says the least that would do, as a value") {
  PlanQuestion question{.step = step_of("mnist-cnn"), .batch = WholeBatch(64), .budget = 64_KiB};
  question.levers.operators = false;  // all of it would run on the CPU
  question.step.process.usual_runtime = executed_runtime;
  const auto found = answer(question);
  REQUIRE(found);
  CHECK(found->plans.empty());
  CHECK_FALSE(found->has_valid_plan());
  REQUIRE_FALSE(found->why_none.empty());
  REQUIRE(found->least_memory);
  CHECK_FALSE(found->least_memory->card_total);
  question.budget = found->least_memory->budget;
  const auto planned = answer(question);
  REQUIRE(planned);
  REQUIRE(planned->chosen);
  CHECK(planned->has_valid_plan());
  CHECK(planned->plans[*planned->chosen].totals.arena <= *question.budget);
}

TEST_CASE("a cancelled search for plans is an answer with what there is") {
  PlanQuestion question{.step = step_of("mnist-cnn"), .budget = 8_MiB};
  question.step.process.usual_runtime = executed_runtime;
  const auto found = answer(question, {.is_cancelled = [] { return true; }});
  REQUIRE(found);
  CHECK(found->was_interrupted);
  CHECK(found->why_none.empty());
}

TEST_CASE("a table asks for several models, a folder of them, or several cards") {
  CHECK_FALSE(asks_for_table({"vgg16"}, configs(), card_of(1_GiB)));
  CHECK(asks_for_table({"vgg16", "mlp"}, configs(), card_of(1_GiB)));
  CHECK(asks_for_table({source_path("/configs/models")}, configs(), card_of(1_GiB)));
  for (const char* name : {"rtx3090,t4", "all", "All"}) {
    CAPTURE(name);
    CHECK(asks_for_table({"vgg16"}, configs(), {.name = name}));
  }
}

TEST_CASE("a summary at a batch whose sizes leave 64 bits is refused") {
  SummaryQuestion question{.model = {.source = "vgg16", .configs = configs()},
                           .batch = std::int64_t{1} << 60,
                           .costs = true};
  const auto refused = answer(question);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().message ==
        "`batch` 1152921504606846976: what this model keeps leaves 64 bits");
}

}  // namespace stowage
