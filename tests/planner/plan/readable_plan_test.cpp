#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "planner/plan/plan_file.hpp"
#include "tests/support/resident_plan.hpp"

using namespace stowage;

namespace {

Plan readable() {
  TwoEngines source(512_B);
  return resident_plan(R"(model: m
inputs:
  x: {shape: [batch, 4]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc, from: x, features: 3}
loss:
  cross_entropy: {from: [fc, label]}
)",
                       8, source);
}

Result<Plan> read_text(const std::string& text) {
  return read_plan(std::make_shared<const SourceText>(SourceText{"p.yaml", text}));
}

Minimised minimised_in(const std::string& text) {
  const auto read = read_text(text);
  if (!read) FAIL(render(read.error()));
  return read->minimised;
}

std::string with(std::string text, std::string_view what, std::string_view instead) {
  const std::size_t at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), instead);
}

std::string refusal(const Plan& plan) {
  try {
    const auto text = write_readable_plan(plan);
    return text ? *text : text.error().front().message;
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a plan that can be read is written as it is") {
  const Plan plan = readable();
  CHECK(write_readable_plan(plan).value() == write_plan(plan));
}

TEST_CASE("a plan that is larger than a plan's file may be is refused") {
  Plan plan = readable();
  plan.name = std::string(std::size_t{65} << 20, 'a');
  const std::string refused = refusal(plan);
  CHECK(refused.starts_with("the plan takes 65."));
  CHECK(refused.ends_with(" MiB, and a plan's file has at most 64.0 MiB"));
}

TEST_CASE("a plan that no reader takes is not written") {
  Plan plan = readable();
  StepGraph twice = *plan.step.graph;
  twice.storages[1].name = twice.storages[0].name;
  plan.step.graph = std::make_shared<const StepGraph>(twice);
  const std::string refused = refusal(plan);
  CHECK(refused.starts_with("a plan was made that cannot be read: line "));
  CHECK(refused.ends_with(
      fmt::format(": the step: two storages are called '{}'", twice.storages[0].name)));
  plan = readable();
  plan.transfers.front().end = 100;
  CHECK(refusal(plan).ends_with(
      fmt::format(": the end must be from 0 to {}", plan.step.graph->nodes.size())));
}

TEST_CASE("a plan states what it minimised") {
  Plan plan = readable();
  const std::string seconds = write_plan(plan);
  CHECK(seconds.find("\nminimised: seconds\n") != seconds.npos);
  CHECK(minimised_in(seconds) == Minimised::seconds);
  plan.minimised = Minimised::bytes;
  const std::string bytes = write_plan(plan);
  CHECK(minimised_in(bytes) == Minimised::bytes);
  const auto wrong = read_text(with(bytes, "minimised: bytes", "minimised: time"));
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().front().message == "'minimised' must be seconds or bytes, not 'time'");
}

TEST_CASE("a plan that does not state what it minimised is known by its name") {
  Plan plan = readable();
  const auto unstated = [&] {
    return with(write_plan(plan), fmt::format("minimised: {}\n", to_string(plan.minimised)), "");
  };
  CHECK(minimised_in(unstated()) == Minimised::seconds);
  plan.name = "min-pcie";
  CHECK(minimised_in(unstated()) == Minimised::seconds);
  plan.pinned = Pinned::all_nodes;
  CHECK(minimised_in(unstated()) == Minimised::bytes);
}
