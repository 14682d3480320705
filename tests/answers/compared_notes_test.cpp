// What a table says beside its rows.
#include "answers/table/compared_notes.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace stowage {

namespace {

Diagnostic note_that(const std::string& message) {
  return {.severity = Severity::note, .message = message};
}

}  // namespace

TEST_CASE("what several models share is said once, with the first one's name") {
  const std::vector<NotesOfModel> notes = {{"a", {note_that("no loss")}},
                                           {"b", {note_that("no loss"), note_that("two inputs")}},
                                           {"c", {note_that("no loss")}}};
  CHECK(render(compared_notes(notes, 3)) ==
        "note: a and 2 others: no loss\n"
        "note: b: two inputs\n");
  CHECK(render(compared_notes({notes[0], notes[1]}, 2)) ==
        "note: a and b: no loss\n"
        "note: b: two inputs\n");
}

TEST_CASE("errors come before notes, whatever the order of the models") {
  const std::vector<NotesOfModel> notes = {
      {"a", {note_that("no loss")}},
      {"b", {{.message = "there is no file 'b'"}, {.message = "broken"}}}};
  CHECK(render(compared_notes(notes, 2)) ==
        "error: there is no file 'b'\n"
        "error: b: broken\n"
        "note: a: no loss\n");
}

TEST_CASE("a mistake of one model on many cards is told once") {
  const Diagnostics mistakes = {{.message = "no such kernel"}};
  CHECK(render(compared_notes({{"a", mistakes}, {"a", mistakes}}, 1)) == "error: no such kernel\n");
  CHECK(render(compared_notes({{"a", mistakes}, {"a", mistakes}}, 2)) ==
        "error: a: no such kernel\n");
}

TEST_CASE("a place in a file names the model") {
  const auto source = std::make_shared<const SourceText>(SourceText{"a.yaml", "x\n"});
  const Diagnostic placed = {.message = "unknown 'x'", .span = {source, 1, 1, 1}};
  CHECK(compared_notes({{"a.yaml", {placed}}}, 2).front().message == "unknown 'x'");
}

}  // namespace stowage
