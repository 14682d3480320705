// A recorded step that does not update its parameters: every answer says so, and --optimizer adds
// the update.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::said_beside_cudnn;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

std::string seed_file(const std::string& name) {
  return testing::source_path("/tests/fuzz/step/" + name + ".json");
}

const std::string whole = seed_file("no-update"), part = seed_file("part-update");
const Words on_card{"--gpu", "rtx3090"};

std::string warning(const std::string& model, const std::string& parameters) {
  return "warning: " + model + "the step has no update of " + parameters +
         ": no optimizer ran for them when the step was recorded, so the optimizer's state and "
         "temporaries are not counted\n"
         "  check, batch and plan take --optimizer adamw, which adds them; or record a function "
         "that calls optimizer.step()\n";
}

const std::string of_whole = warning("", "4 trained parameters (432 B)");
const std::string of_part = warning("", "2 trained parameters (144 B)");

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

json answer_of(const Words& words) {
  const Outcome outcome = stowage_program(words + Words{"--format", "json"});
  CHECK(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("check says of a step without an update that it has none") {
  const Outcome outcome = stowage_program(Words{"check", whole} + on_card);
  CHECK(said_beside_cudnn(outcome) == of_whole);
  CHECK(first_line(outcome.out) ==
        "step, batch 2, training without an update, fp32, pytorch runtime");
  const json found = answer_of(Words{"check", whole} + on_card);
  CHECK(found["settings"]["optimizer"].is_null());
  CHECK(found["settings"]["momentum"].is_null());
  CHECK(found["settings"]["optimizer_implementation"].is_null());
  CHECK(found["settings"]["not_updated"] == json{{"parameters", 4}, {"parameter_bytes", 432}});
  CHECK(found["notes"][0]["severity"] == "warning");
}

TEST_CASE("check says of a step that updates a part of its parameters what it lacks") {
  const Outcome outcome = stowage_program(Words{"check", part} + on_card);
  CHECK(said_beside_cudnn(outcome) == of_part);
  CHECK(first_line(outcome.out) ==
        "step, batch 2, training with adamw, some parameters without an update, fp32, pytorch "
        "runtime");
  const json found = answer_of(Words{"check", part} + on_card);
  CHECK(found["settings"]["optimizer"] == "adamw");
  CHECK(found["settings"]["not_updated"] == json{{"parameters", 2}, {"parameter_bytes", 144}});
}

TEST_CASE("batch, summary, tables and plans say it as well") {
  const Outcome batch = stowage_program(Words{"batch", whole} + on_card);
  CHECK(said_beside_cudnn(batch) == of_whole);
  CHECK(first_line(batch.out).starts_with("step, training without an update, fp32"));
  CHECK(answer_of(Words{"batch", whole} + on_card)["settings"]["not_updated"]["parameters"] == 4);

  const Outcome summary = stowage_program({"summary", whole, "--batch", "2"});
  CHECK(summary.err == of_whole);
  CHECK(summary.out.find("\nTraining without an update, batch 2: live at the peak") !=
        std::string::npos);
  const json memory = answer_of({"summary", whole, "--batch", "2"})["memory"];
  CHECK(memory["optimizer"].is_null());
  CHECK(memory["not_updated"]["parameter_bytes"] == 432);

  const Outcome table = stowage_program(Words{"check", whole, part} + on_card);
  CHECK(said_beside_cudnn(table) == warning(whole + ": ", "4 trained parameters (432 B)") +
                                        warning(part + ": ", "2 trained parameters (144 B)"));
  CHECK(table.out.find("step, training without an update, fp32") != std::string::npos);

  const TemporaryFolder folder;
  const std::string file = folder.file("plan.yaml", "");
  const Outcome plan = stowage_program(
      Words{"plan", whole, "--budget", "1MiB", "--batch", "2", "-o", file} + on_card);
  CHECK(said_beside_cudnn(plan) == of_whole);
  CHECK(first_line(plan.out) == "step, batch 2, training without an update, fp32, pytorch kernels");
  CHECK(testing::file_text(file).find("\"not_updated\": [0,1,2,3]") != std::string::npos);
  CHECK(stowage_program({"validate", file, "--model-only"}).exit_code == 0);
}

TEST_CASE("--optimizer adds the update that the step lacks") {
  const Outcome outcome = stowage_program(Words{"check", whole, "--optimizer", "adamw"} + on_card);
  CHECK(said_beside_cudnn(outcome) ==
        "note: the update of 4 parameters by adamw was not recorded: it is added at the end of the "
        "step\n");
  CHECK(first_line(outcome.out) == "step, batch 2, training with adamw, fp32, pytorch runtime");
  const json found = answer_of(Words{"check", whole, "--optimizer", "adamw"} + on_card);
  CHECK(found["settings"]["optimizer"] == "adamw");
  CHECK(found["settings"]["not_updated"].is_null());
  const json fused = answer_of(
      Words{"check", whole, "--optimizer", "adam", "--optimizer-implementation", "fused"} +
      on_card);
  CHECK(fused["settings"]["optimizer_implementation"] == "fused");
  const json of_part = answer_of(Words{"check", part, "--optimizer", "momentum"} + on_card);
  CHECK(of_part["settings"]["optimizer"] == "adamw");
  CHECK(of_part["notes"][0]["message"] ==
        "the update of 2 parameters by sgd with momentum was not recorded: it is added at the end "
        "of the step");
}

TEST_CASE("what cannot be added is refused") {
  const Outcome alone =
      stowage_program(Words{"check", whole, "--optimizer-implementation", "fused"} + on_card);
  CHECK(alone.exit_code == 2);
  CHECK(alone.err ==
        "<command line>: error: --optimizer-implementation fused: the step has no update of some "
        "parameters\n"
        "  --optimizer says which optimizer updates them\n");
  const Outcome twice =
      stowage_program(Words{"check", seed_file("in-turn"), "--optimizer", "adamw"} + on_card);
  CHECK(twice.exit_code == 2);
  CHECK(twice.err ==
        "<command line>: error: an optimizer's state of 'weight' is in the step already, from an "
        "earlier call that updated it\n"
        "  record a function that updates it in each call\n");
  const Outcome updated =
      stowage_program(Words{"check", seed_file("linear"), "--optimizer", "adamw"} + on_card);
  CHECK(updated.exit_code == 2);
  CHECK(updated.err.find("--optimizer adamw: the step was made for sgd") != std::string::npos);
}

}  // namespace stowage
