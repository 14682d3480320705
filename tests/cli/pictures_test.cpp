// Forms of export that are looked at, as a user asks for them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::said_beside_cudnn;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::operator+;

namespace {

std::vector<std::string> exported(const std::string& form) {
  return {"export", "mlp", "--gpu", "t4", "--batch", "64", "--to", form};
}

}  // namespace

TEST_CASE("what is no text goes into a file or a pipe, and not onto a terminal or into JSON") {
  for (const auto& row :
       {std::pair("trace", ".pftrace"), std::pair("memory-snapshot", ".pickle")}) {
    const std::string form = row.first, ending = row.second;
    CAPTURE(form);
    CHECK(stowage_program(exported(form)).exit_code == 0);
    const std::string hint =
        fmt::format("  stowage export mlp --to {} --batch 64 --gpu t4 -o step{}", form, ending);
    const Outcome shown = stowage_program(exported(form), {.terminal_columns = 120});
    CHECK(shown.exit_code == 2);
    CHECK(shown.out ==
          fmt::format("<command line>: error: {} is no text, and stdout is a terminal\n{}\n", form,
                      hint));
    const Outcome as_json =
        stowage_program(exported(form) + std::vector<std::string>{"--format", "json"});
    CHECK(as_json.exit_code == 2);
    CHECK(json::parse(as_json.err)["diagnostics"][0]["message"] ==
          form + " is no text, and stdout is JSON");
  }
}

TEST_CASE("in a file's report JSON has the file's text, or null where it is none") {
  const TemporaryFolder folder;
  const auto report = [&](const std::string& form) {
    const Outcome made = stowage_program(
        exported(form) + std::vector<std::string>{"--format", "json", "-o", folder.path(form)});
    REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    return json::parse(made.out);
  };
  CHECK(report("trace")["text"].is_null());
  CHECK(report("svg")["text"].get<std::string>().starts_with("<svg "));
  CHECK(report("svg")["fits"] == true);
}

TEST_CASE("a file that is named as another kind is refused with the right name") {
  const auto refused = [](const std::string& form, const std::string& file) {
    return said_beside_cudnn(
        stowage_program({"export", "mlp", "--to", form, "--gpu", "t4", "-o", file}));
  };
  CHECK(refused("svg", "m.png") ==
        "<command line>: error: what is written is a file .svg, and 'm.png' is named as something "
        "else\n"
        "  stowage export mlp --to svg --gpu t4 -o m.svg\n");
  CHECK(refused("memory-snapshot", "m.json") ==
        "<command line>: error: what is written is a file .pickle, and 'm.json' is named as "
        "something else\n"
        "  stowage export mlp --to memory-snapshot --gpu t4 -o m.pickle\n");
}

TEST_CASE("a picture of a step wants a card, and takes no serving") {
  const Outcome served = stowage_program(
      {"export", "llama-3.2-1b", "--to", "svg", "--gpu", "t4", "--context-length", "128"});
  CHECK(
      said_beside_cudnn(served) ==
      "<command line>: error: --context-length is of serving, and svg shows a step: one pass over "
      "the batch\n"
      "  without --context-length the model's step is shown\n");
}

TEST_CASE("a plan has a trace, a drawing and tables; the allocator's history is a model's") {
  const TemporaryFolder folder;
  const std::string plan = folder.path("plan.yaml");
  REQUIRE(stowage_program({"plan", "mlp", "--batch", "64", "--budget", "64MiB", "-o", plan})
              .exit_code == 0);
  CHECK(stowage_program({"export", plan, "--to", "svg"}).out.starts_with("<svg "));
  CHECK(stowage_program({"export", plan, "--to", "markdown"}).out.starts_with("### mlp, batch 64"));
  CHECK(stowage_program({"export", plan, "--to", "trace"}).exit_code == 0);
  const Outcome history = stowage_program({"export", plan, "--to", "memory-snapshot"});
  CHECK(history.exit_code == 2);
  CHECK(history.err == plan +
                           ": error: memory-snapshot is of a model's step, and this is a plan\n"
                           "  name the model that it was made of, with its settings\n");
}

}  // namespace stowage
