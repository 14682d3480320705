// What reaches a terminal, and what the program does where it cannot write.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::typed;

namespace {

const std::string long_name = "a_layer_whose_name_is_far_longer_than_any_screen_is_wide_" +
                              std::string(100, 'x') + "_and_goes_on_to_its_end";

std::string net(const std::string& layer) {
  return "model: net\ninputs:\n  x: {shape: [batch, 4]}\nlayers:\n  - linear: {name: \"" + layer +
         "\", features: 3}\n";
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::size_t longest = 0;
  while (std::getline(lines, line)) longest = std::max(longest, line.size());
  return longest;
}

/// Of UTF-8.
std::ptrdiff_t characters(const std::string& line) {
  return std::count_if(line.begin(), line.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
  });
}

}  // namespace

TEST_CASE("tables keep to a terminal's width or to COLUMNS, and are whole in a pipe without") {
  const std::string text = net(long_name);
  const Outcome piped = stowage_program({"summary", "-"}, {.input = text});
  CHECK(piped.out.find(long_name) != std::string::npos);
  for (const int columns : {60, 80, 132}) {
    const Outcome shown =
        stowage_program({"summary", "-"}, {.input = text, .terminal_columns = columns});
    CHECK(shown.exit_code == 0);
    CHECK(longest_line(shown.out) <= static_cast<std::size_t>(columns) + 8);  // bold's escapes
    CHECK(shown.out.find("a_layer_wh") != std::string::npos);
    CHECK(shown.out.find("its_end") != std::string::npos);
  }
  const Outcome asked =
      stowage_program({"summary", "-"},
                      {.input = text, .environment = {{"COLUMNS", "50"}}, .terminal_columns = 200});
  CHECK(longest_line(asked.out) <= 58);
  const Outcome no_terminal =
      stowage_program({"summary", "-"}, {.input = text, .environment = {{"COLUMNS", "50"}}});
  CHECK(longest_line(no_terminal.out) <= 50);
  CHECK(longest_line(piped.out) > 50);
}

TEST_CASE("at any width names are whole over their lines, and figures are whole") {
  const auto gpus = [](int columns) {
    const Outcome shown = stowage_program({"gpus", "rtx 4060 ti"}, {.terminal_columns = columns});
    CHECK(shown.exit_code == 0);
    std::string text = shown.out;
    std::erase(text, '\r');
    return text;
  };
  CHECK(gpus(100) ==
        "                   CUDA                          fp32  Link\n"
        "  nvidia-smi      total    Context   CC  GB/s  TFLOPS  GB/s  PCIe     Name\n"
        "   16.00 GiB  15.57 GiB  184.0 MiB  8.9   288    22.1  12.8  gen4 x8  GeForce RTX 4060 Ti "
        "16GB\n"
        "    8.00 GiB   7.62 GiB  184.0 MiB  8.9   288    22.1  12.8  gen4 x8  GeForce RTX 4060 Ti "
        "8GB\n");
  CHECK(gpus(80) ==
        "                   CUDA\n"
        "  nvidia-smi      total    Context   CC  GB/s  PCIe     Name\n"
        "   16.00 GiB  15.57 GiB  184.0 MiB  8.9   288  gen4 x8  GeForce RTX 4060 Ti 16GB\n"
        "    8.00 GiB   7.62 GiB  184.0 MiB  8.9   288  gen4 x8  GeForce RTX 4060 Ti 8GB\n"
        "  (no room for fp32 TFLOPS, Link GB/s)\n");
  CHECK(gpus(40) ==
        "                   CUDA\n"
        "  nvidia-smi      total    Context   CC\n"
        "   16.00 GiB  15.57 GiB  184.0 MiB  8.9\n"
        "    PCIe: gen4 x8\n"
        "    Name: GeForce RTX 4060 Ti 16GB\n"
        "    8.00 GiB   7.62 GiB  184.0 MiB  8.9\n"
        "    PCIe: gen4 x8\n"
        "    Name: GeForce RTX 4060 Ti 8GB\n"
        "  (no room for GB/s, fp32 TFLOPS, Link GB/s)\n");
}

TEST_CASE("no table of any command is wider than the screen, and no figure is cut") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"gpus"},
        {"models"},
        {"ops"},
        {"summary", "mnist-cnn"},
        {"check", "mnist-cnn", "--gpu", "t4"},
        {"batch", "mlp", "--gpu", "t4"},
        {"check", "mlp", "mnist-cnn", "--gpu", "t4,rtx3090"}}) {
    CAPTURE(words.front());
    for (const int columns : {40, 60, 80, 100}) {
      CAPTURE(columns);
      const Outcome shown = stowage_program(words, {.terminal_columns = columns});
      std::istringstream lines(shown.out);
      std::string line;
      while (std::getline(lines, line)) {
        std::erase(line, '\r');
        // Rows begin with two blanks, and with a figure or a text below it.
        const bool in_table = line.starts_with("  ") && line.find("  ", 2) != line.npos;
        if (!in_table) continue;
        CAPTURE(line);
        CHECK(characters(line) <= columns);
        // What operators mean has such marks of its own.
        if (words.front() != "ops") CHECK(line.find("...") == line.npos);
      }
    }
  }
}

TEST_CASE("no raw byte of a name reaches the output") {
  // YAML's own escapes, in what a description says freely.
  const std::string text = "model: \"n\\e[31m\"\nsource: \"s\\u202eb\\u009b\"\n" +
                           net("fc").substr(net("fc").find('\n') + 1);
  for (const char* format : {"table", "csv", "markdown", "json"}) {
    CAPTURE(format);
    const Outcome shown = stowage_program({"summary", "-", "--format", format}, {.input = text});
    CHECK(shown.exit_code == 0);
    CHECK_FALSE(has_control_character(shown.out));
    CHECK(shown.out.find("\xc2\x9b") == std::string::npos);
    CHECK(shown.out.find("\xe2\x80\xae") == std::string::npos);
  }
  const json answer =
      json::parse(stowage_program({"summary", "-", "--format=json"}, {.input = text}).out);
  CHECK(answer["model"]["name"] == "n\x1b[31m");
  CHECK(answer["model"]["source"] == std::string("s\xe2\x80\xae") + "b\xc2\x9b");
}

TEST_CASE("no raw byte of an argument or of the environment reaches stderr") {
  const auto shown = [](const std::vector<std::string>& words,
                        const std::map<std::string, std::string>& environment = {}) {
    const Outcome outcome = stowage_program(words, {.environment = environment});
    CHECK(outcome.exit_code == 2);
    CHECK_FALSE(has_control_character(outcome.err));
    return outcome.err;
  };
  CHECK(shown({"ch\x1b[31meck"}) ==
        "<command line>: error: there is no command 'ch\\x1b[31meck'\n"
        "  stowage --help lists the commands\n");
  CHECK(shown({"summary", "\xff\x1b]0;title\x07"}).find("'\\xff\\x1b]0;title\\x07'") !=
        std::string::npos);
  CHECK(shown({"gpus"}, {{"STOWAGE_CONFIGS", "\x1b[2J"}}) ==
        "error: STOWAGE_CONFIGS is '\\x1b[2J', which is not a folder\n");
}

TEST_CASE("under --format json a mistake is JSON on stderr, with its place") {
  const TemporaryFolder folder;
  const std::string path = folder.file("net.yaml", "model: net\nlayerz: []\n");
  const Outcome outcome = stowage_program({"summary", path, "--format", "json"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  const json told = json::parse(outcome.err);
  CHECK(told["schema_version"] == 1);
  REQUIRE(told["diagnostics"].size() == 3);
  const json& first = told["diagnostics"][2];
  CHECK(first["severity"] == "error");
  CHECK(first["message"].get<std::string>().find("layerz") != std::string::npos);
  CHECK(first["file"] == path);
  CHECK(first["line"] == 2);
  CHECK(first["column"] == 1);
  CHECK(first["hint"] == "did you mean 'layers'?");

  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"chek", "--format=json"},
        std::vector<std::string>{"check", "--bach", "2", "--format", "json"},
        std::vector<std::string>{"check", "mnist-cnn", "--format", "json"}}) {
    const Outcome usage = stowage_program(words);
    CHECK(usage.exit_code == 2);
    CHECK(usage.out.empty());
    const json mistake = json::parse(usage.err)["diagnostics"][0];
    CHECK(mistake["file"] == "<command line>");
    CHECK(mistake["line"].is_null());
  }
}

TEST_CASE("a full disk is told where it can be, and ends nothing by a signal") {
  const Outcome no_stdout = stowage_program({"gpus"}, {.out_file = "/dev/full"});
  CHECK(no_stdout.exit_code == 2);
  CHECK(no_stdout.err == "error: cannot write the result: No space left on device\n");
  CHECK(stowage_program({"gpus", "--gpu"}, {.err_file = "/dev/full"}).exit_code == 2);
  CHECK(stowage_program({"gpus"}, {.out_file = "/dev/full", .err_file = "/dev/full"}).exit_code ==
        2);
  const Outcome noted =
      stowage_program({"check", "mnist-cnn", "--gpu-memory", "8GiB"}, {.err_file = "/dev/full"});
  CHECK(noted.exit_code == 0);
  CHECK(typed("set -o pipefail; stowage gpus | true").err.empty());
}

TEST_CASE("-V and --version say the same") {
  CHECK(stowage_program({"-V"}).out == stowage_program({"--version"}).out);
}

TEST_CASE("what takes long says so on a terminal, and leaves nothing there") {
  const std::vector<std::string> words{"plan", "resnet50", "--batch", "64", "--budget", "3GiB"};
  const Outcome shown = stowage_program(words, {.terminal_columns = 100});
  CHECK(shown.out.find("searching for better plans (Ctrl-C takes the best so far)") !=
        std::string::npos);
  CHECK(stowage_program(words).err.find("searching") == std::string::npos);
}

}  // namespace stowage
