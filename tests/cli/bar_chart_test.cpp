// Charts of characters: whole texts, and that a terminal alone has them.
#include "cli/output/bar_chart.hpp"

#include <doctest/doctest.h>

#include "tests/cli/program.hpp"

namespace stowage {

using testing::Circumstances;
using testing::Outcome;
using testing::stowage_program;

namespace {

ColumnChart step_chart() {
  return {.title = "memory:",
          .values = {1_MiB, 2_MiB, 6_MiB, 3_MiB, 1_KiB, 0_B},
          .parts = {{0, "forward"}, {3, "backward"}, {5, "update"}}};
}

RowChart batch_chart() {
  return {.title = "batches:",
          .bars = {{"1", 1_GiB}, {"1,000", 6_GiB}, {"1,500", 12_GiB}},
          .limit = 8_GiB};
}

}  // namespace

TEST_CASE("columns rise to the largest value, in eighths of a character or in whole ones") {
  CHECK(chart_text(step_chart(), {.unicode = true, .width = 34}) ==
        "memory:\n"
        "6.0 MiB │        ████\n"
        "        │        ████\n"
        "        │        ████\n"
        "        │        ████████\n"
        "        │    ████████████\n"
        "        │████████████████▁▁▁▁\n"
        "         forward     backward\n");
  CHECK(chart_text(step_chart(), {.width = 34}) ==
        "memory:\n"
        "6.0 MiB |        ####\n"
        "        |        ####\n"
        "        |        ####\n"
        "        |        ########\n"
        "        |    ############\n"
        "        |################\n"
        "         forward     backward\n");
}

TEST_CASE("more values than characters are shown by the largest of each character") {
  ColumnChart chart{.title = "memory:", .values = std::vector<Bytes>(1000, 1_MiB)};
  chart.values[537] = 6_MiB;
  const std::string text = chart_text(chart, {.width = 29});
  CHECK(text ==
        "memory:\n"
        "6.0 MiB |          #\n"
        "        |          #\n"
        "        |          #\n"
        "        |          #\n"
        "        |          #\n"
        "        |####################\n");
}

TEST_CASE("a chart is left out where there is no room, or nothing to show") {
  CHECK(chart_text(step_chart(), {.width = 18}) == "");
  CHECK(chart_text(batch_chart(), {.width = 20}) == "");
  CHECK(chart_text(ColumnChart{.title = "t"}, {}) == "");
  CHECK(chart_text(RowChart{.title = "t"}, {}) == "");
}

TEST_CASE("rows have a line at the limit, and are red beyond it where colours are wanted") {
  CHECK(chart_text(batch_chart(), {.unicode = true, .width = 41}) ==
        "batches:\n"
        "    1   1.0 GiB  ██              │\n"
        "1,000   6.0 GiB  ████████████    │\n"
        "1,500  12.0 GiB  ████████████████████████\n");
  CHECK(chart_text(batch_chart(), {.colour = true, .width = 41}) ==
        "batches:\n"
        "    1   1.0 GiB  ##              |\n"
        "1,000   6.0 GiB  ############    |\n"
        "1,500  12.0 GiB  \x1b[31m########################\x1b[0m\n");
}

TEST_CASE("check and batch show their charts on a terminal, not in a pipe and not with --quiet") {
  const std::vector<std::string> check{"check", "mlp", "--gpu", "t4", "--batch", "64"};
  const std::vector<std::string> batch{"batch", "mnist-cnn", "--gpu-memory", "2GiB"};
  const Circumstances terminal{.environment = {{"LC_ALL", "C.UTF-8"}}, .terminal_columns = 80};
  const Circumstances ascii{.environment = {{"LC_ALL", "C"}}, .terminal_columns = 80};
  const std::string title = "Memory of tensors, kernel by kernel:";
  const std::string shown = stowage_program(check, terminal).out;
  CHECK(shown.find(title) != std::string::npos);
  CHECK(shown.find("█") != std::string::npos);
  CHECK(shown.find("forward") != std::string::npos);
  const std::string plain = stowage_program(check, ascii).out;
  CHECK(plain.find(title) != std::string::npos);
  CHECK(plain.find("█") == std::string::npos);
  CHECK(plain.find("###") != std::string::npos);
  CHECK(stowage_program(check).out.find(title) == std::string::npos);
  CHECK(stowage_program(batch, terminal).out.find("available:\n") != std::string::npos);
  CHECK(stowage_program(batch).out.find("available:\n") == std::string::npos);
  Circumstances dumb = terminal;
  dumb.environment["TERM"] = "dumb";
  CHECK(stowage_program(check, dumb).out.find(title) == std::string::npos);
  std::vector<std::string> quiet = check;
  quiet.emplace_back("--quiet");
  CHECK(stowage_program(quiet, terminal).out == "");
  Circumstances no_colour = terminal;
  no_colour.environment["NO_COLOR"] = "1";
  CHECK(stowage_program(batch, no_colour).out.find('\x1b') == std::string::npos);
}

}  // namespace stowage
