// What the program says about its own usage: whole messages, exit codes, where they go.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "answers/question/version.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/help.hpp"
#include "cli/options/option.hpp"
#include "cli/report/kernel_reference.hpp"
#include "cli/report/operator_reference.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;

namespace {

Result<RenderedAnswer> run_nothing(const Arguments&) { return RenderedAnswer{}; }

const CommandSpec& test_command() {
  static const CommandSpec command{.name = "weigh",
                                   .summary = "weighs",
                                   .details = "Weighs.",
                                   .positionals = {{.name = "MODEL", .help = "what to weigh"}},
                                   .options = {"batch", "in-use", "precision", "runtime", "set",
                                               "compute-capability", "format", "verbose", "output"},
                                   .examples = {"stowage weigh vgg16"},
                                   .run = run_nothing};
  return command;
}

Result<Arguments> parse(const std::vector<std::string>& words) {
  return parse_arguments(test_command(), words);
}

std::string complaint_about(const std::vector<std::string>& words) {
  const auto parsed = parse(words);
  return parsed ? "accepted" : render(parsed.error());
}

}  // namespace

TEST_CASE("values are read with either spelling, defaults come from the table") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"net.yaml", "--batch", "64", "--in-use", "233MiB", "-v"},
        std::vector<std::string>{"--batch=64", "--in-use=233MiB", "--verbose", "net.yaml"},
        std::vector<std::string>{"-v", "--in-use", "233 MiB", "net.yaml", "--batch=64"}}) {
    const auto arguments = parse(words);
    REQUIRE(arguments);
    CHECK(arguments->positionals() == std::vector<std::string>{"net.yaml"});
    CHECK(arguments->integer("batch") == 64);
    CHECK(arguments->size("in-use") == Bytes(233 << 20));
    CHECK(arguments->flag("verbose"));
    CHECK(arguments->text("format") == "table");
    CHECK_FALSE(arguments->given("format"));
    CHECK_FALSE(arguments->text("precision").has_value());
    CHECK_FALSE(arguments->text("output").has_value());
  }
}

TEST_CASE("options and values go by the names that other tools give them") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"m", "-b", "8", "--dtype", "float16", "--runtime", "torch"},
        std::vector<std::string>{"m", "--batch-size=8", "--precision=half", "--runtime=pytorch"},
        std::vector<std::string>{"m", "--batch", "8", "--dtype=fp16", "--runtime", "torch"}}) {
    const auto arguments = parse(words);
    REQUIRE(arguments);
    CHECK(arguments->integer("batch") == 8);
    CHECK(arguments->text("precision") == "fp16");
    CHECK(arguments->text("runtime") == "pytorch");
  }
  CHECK(parse({"m", "--runtime", "tf"})->text("runtime") == "tensorflow");
  CHECK(parse({"m", "--dtype", "bfloat16"})->text("precision") == "bf16");
  CHECK(complaint_about({"m", "-b", "1", "--batch-size", "2"}) ==
        "<command line>: error: --batch is given twice\n");
  CHECK(complaint_about({"m", "--batch-size"}) ==
        "<command line>: error: --batch needs a value: N\n");
}

TEST_CASE("a synonym stands for a choice of its option, and no name is given twice") {
  std::set<std::string_view> names;
  for (const OptionSpec& option : option_table()) {
    CHECK(names.insert(option.name).second);
    for (const std::string_view alias : option.aliases) CHECK(names.insert(alias).second);
    for (const auto& [word, meaning] : option.synonyms) {
      CHECK(std::count(option.choices.begin(), option.choices.end(), meaning) == 1);
      CHECK(std::count(option.choices.begin(), option.choices.end(), word) == 0);
    }
  }
}

TEST_CASE("an option that may stand alone takes each of its values, and no model's name") {
  int optional_values = 0;
  for (const OptionSpec& option : option_table()) {
    if (option.alone.empty()) continue;
    ++optional_values;
    CAPTURE(option.name);
    CommandSpec command = test_command();
    command.options = {option.name};
    command.positionals = {
        {.name = "MODEL", .help = "what to weigh", .required = false, .repeats = true}};
    const std::string dashed = "--" + std::string(option.name);
    const auto value_of = [&](const std::string& next) {
      const auto parsed = parse_arguments(command, std::vector<std::string>{dashed, next});
      REQUIRE(parsed);
      CHECK(parsed->positionals().empty() == (parsed->text(option.name) == next));
      return parsed->text(option.name);
    };
    REQUIRE_FALSE(option.words.empty());
    for (const std::string_view word : option.words) {
      const std::string value = word == any_number    ? "16"
                                : word.ends_with('=') ? std::string(word) + "x"
                                                      : std::string(word);
      CHECK(value_of(value) == value);
      CHECK(value_of(value + ",more=1") == value + ",more=1");
      if (!word.ends_with('=') && word != any_number) {
        CHECK(value_of(value + "net") == std::string(option.alone));
      }
    }
    CHECK(value_of("alexnet") == std::string(option.alone));
    CHECK(value_of("4chan.yaml") == std::string(option.alone));
    // It means what it does where it stands last.
    const auto last = parse_arguments(command, std::vector<std::string>{"alexnet", dashed});
    REQUIRE(last);
    CHECK(last->text(option.name) == std::string(option.alone));
  }
  CHECK(optional_values == 4);
}

TEST_CASE("stdin, short options and repeated assignments") {
  const auto arguments = parse({"-", "-o", "plan.yaml", "--set", "width=0.5", "--set=depth=a=b"});
  REQUIRE(arguments);
  CHECK(arguments->positionals() == std::vector<std::string>{"-"});
  CHECK(arguments->text("output") == "plan.yaml");
  CHECK(arguments->assignments("set") ==
        std::map<std::string, std::string>{{"depth", "a=b"}, {"width", "0.5"}});
}

TEST_CASE("a batch that counts nothing is refused in clear words") {
  CHECK(complaint_about({"m", "--batch", "0"}) ==
        "<command line>: error: --batch 0 is out of range; it takes 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch", "-5"}) ==
        "<command line>: error: --batch -5 is out of range; it takes 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch=-5"}) ==
        "<command line>: error: --batch -5 is out of range; it takes 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch", "1e9"}) ==
        "<command line>: error: --batch takes a whole number, and '1e9' is not one\n"
        "  write it in digits, 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch", "abc"}) ==
        "<command line>: error: --batch takes a whole number, and 'abc' is not one\n"
        "  write it in digits, 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch", "2000000000"}) ==
        "<command line>: error: --batch 2000000000 is out of range; it takes 1 to 1000000000\n");
  CHECK(complaint_about({"m", "--batch="}) == "<command line>: error: --batch needs a value: N\n");
}

TEST_CASE("sizes, choices, assignments") {
  CHECK(complaint_about({"m", "--in-use", "-5MB"}) ==
        "<command line>: error: --in-use: '-5MB' is negative; a size of memory is not\n");
  CHECK(complaint_about({"m", "--in-use", "3GXB"}) ==
        "<command line>: error: --in-use: '3GXB' has an unknown unit 'GXB'\n"
        "  did you mean 'GiB'?\n");
  CHECK(complaint_about({"m", "--runtime", "jax"}) ==
        "<command line>: error: --runtime does not know 'jax'\n"
        "  --runtime takes ideal, stowage, pytorch, tensorflow, theano\n");
  CHECK(complaint_about({"m", "--precision", "fp64x"}) ==
        "<command line>: error: --precision does not know 'fp64x'\n"
        "  did you mean 'fp64'?\n");
  CHECK(complaint_about({"m", "--in-use", "5%"}) ==
        "<command line>: error: --in-use: '5%' has an unknown unit '%'\n"
        "  units are B, KiB, MiB, GiB, TiB, KB, MB, GB and TB\n");
  CHECK(complaint_about({"m", "--verbose=3"}) ==
        "<command line>: error: --verbose takes no value\n");
  CHECK(complaint_about({"m", "--set", "width=1", "--set", "width=2"}) ==
        "<command line>: error: --set width is given twice\n");
  CHECK(complaint_about({"m", "--set", "width"}) ==
        "<command line>: error: --set takes NAME=VALUE, and 'width' is not that\n");
  CHECK(complaint_about({"m", "--compute-capability", "nan"}) ==
        "<command line>: error: --compute-capability takes a number, and 'nan' is not one\n");
}

TEST_CASE("unknown, repeated and unfinished options, missing and surplus arguments") {
  CHECK(complaint_about({"m", "--bach", "4"}) ==
        "<command line>: error: stowage weigh has no option '--bach'\n"
        "  did you mean '--batch'?\n");
  CHECK(complaint_about({"m", "--choose=x"}) ==
        "<command line>: error: stowage weigh has no option '--choose'\n"
        "  other commands take it; see stowage weigh --help\n");
  CHECK(complaint_about({"m", "-x"}) ==
        "<command line>: error: stowage weigh has no option '-x'\n"
        "  see stowage weigh --help\n");
  CHECK(complaint_about({"m", "--batch", "4", "--batch=5"}) ==
        "<command line>: error: --batch is given twice\n");
  CHECK(complaint_about({"m", "--batch"}) == "<command line>: error: --batch needs a value: N\n");
  CHECK(complaint_about({"m", "--batch", "--verbose"}) ==
        "<command line>: error: --batch needs a value: N\n");
  CHECK(complaint_about({}) ==
        "<command line>: error: MODEL is missing: what to weigh\n"
        "  for example: stowage weigh vgg16\n");
  CHECK(complaint_about({"m", "n"}) == "<command line>: error: 'n' is one argument too many\n");
}

TEST_CASE("all mistakes of a command line are told in one run") {
  CHECK(complaint_about({"--batch", "0", "--in-use", "much"}) ==
        "<command line>: error: --batch 0 is out of range; it takes 1 to 1000000000\n"
        "<command line>: error: --in-use: 'much' is not a size\n"
        "  write 8GiB, 233MiB or 2GB\n"
        "<command line>: error: MODEL is missing: what to weigh\n"
        "  for example: stowage weigh vgg16\n");
}

TEST_CASE("every option record is whole") {
  for (const OptionSpec& option : option_table()) {
    CAPTURE(option.name);
    CHECK_FALSE(option.help.empty());
    CHECK(option.help.back() != '.');
    CHECK((option.type == OptionType::flag) == option.value.empty());
    CHECK((option.type == OptionType::choice) == !option.choices.empty());
    if (option.type == OptionType::integer || option.type == OptionType::number) {
      CHECK(option.minimum < option.maximum);
    }
    // A default is a value that the option itself accepts.
    if (!option.default_value.empty()) {
      CommandSpec command = test_command();
      command.options = {option.name};
      CHECK(parse_arguments(command,
                            std::vector<std::string>{"m", "--" + std::string(option.name) + "=" +
                                                              std::string(option.default_value)}));
    }
    const bool taken = std::any_of(
        command_table().begin(), command_table().end(), [&](const CommandSpec& command) {
          return std::count(command.options.begin(), command.options.end(), option.name) > 0;
        });
    CHECK(taken);
  }
}

TEST_CASE("every command's help fits its screen and shows a real example") {
  for (const CommandSpec& command : command_table()) {
    CAPTURE(command.name);
    REQUIRE_FALSE(command.examples.empty());
    const std::string brief = short_help(command);
    std::istringstream lines(brief);
    std::string line;
    int count = 0;
    while (std::getline(lines, line)) {
      CHECK_MESSAGE(line.size() <= 80, line);
      ++count;
    }
    CHECK(count <= 24);
    CHECK(brief.find(command.examples.front()) != std::string::npos);

    const std::string full = long_help(command, true);
    std::istringstream full_lines(full);
    while (std::getline(full_lines, line)) CHECK_MESSAGE(line.size() <= 80, line);
    for (const std::string_view name : command.options) {
      REQUIRE(find_option(name) != nullptr);
      CHECK(full.find("--" + std::string(name)) != std::string::npos);
    }
    // An example must at least parse.
    for (const std::string_view example : command.examples) {
      CAPTURE(example);
      std::istringstream words{std::string(example)};
      std::vector<std::string> all(std::istream_iterator<std::string>(words), {});
      REQUIRE(all.size() >= 2);
      CHECK(all[0] == "stowage");
      CHECK(all[1] == command.name);
      CHECK(parse_arguments(command, std::span(all).subspan(2)));
    }
  }
}

TEST_CASE("the operators of docs/model-description.md are the catalogue's") {
  const std::string page = testing::file_text(testing::source_path("/docs/model-description.md"));
  const std::string opening = "<!-- operators -->\n";
  const std::size_t begin = page.find(opening);
  const std::size_t end = page.find("<!-- /operators -->");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  CHECK(page.substr(begin + opening.size(), end - begin - opening.size()) == operator_reference());
}

TEST_CASE("ops shows an operator's kernels on each device, or why there are none") {
  const std::string norm = stowage_program({"ops", "batch_norm"}).out;
  CHECK(
      norm.ends_with("  for example, behind a layer 'stem':\n"
                     "    - batch_norm\n"
                     "  Called in  On host    On cuda    Kernel\n"
                     "  forward    any float  any float  batch_norm_forward\n"
                     "  backward   any float  any float  batch_norm_backward\n"
                     "  inference  any float  any float  batch_norm_inference\n"));
  const std::string custom = stowage_program({"ops", "custom"}).out;
  CHECK(
      custom.ends_with("  Called in  On host  On cuda  Kernel\n"
                       "  forward    none     none     custom_forward\n"
                       "  backward   none     none     custom_backward\n"
                       "  it runs nowhere: what it computes is not stated\n"));
  const std::string reshape = stowage_program({"ops", "reshape"}).out;
  CHECK(reshape.ends_with("  our executor calls no kernel for it\n"));
}

TEST_CASE("docs/commands.md is what the tables say") {
  CHECK(testing::file_text(testing::source_path("/docs/commands.md")) == command_reference());
}

TEST_CASE("docs/kernels.md is what the table of kernels says") {
  const std::string page = testing::file_text(testing::source_path("/docs/kernels.md"));
  CHECK(page == kernel_reference());
  CHECK(stowage_program({"help", "kernels"}).out == page);
}

TEST_CASE("usage mistakes exit 2 with nothing on stdout") {
  const Outcome nothing = stowage_program({});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.out.empty());
  CHECK(nothing.err == program_help());

  const Outcome misspelt = stowage_program({"gpu"});
  CHECK(misspelt.exit_code == 2);
  CHECK(misspelt.out.empty());
  CHECK(misspelt.err ==
        "<command line>: error: there is no command 'gpu'\n"
        "  did you mean 'gpus'?\n");

  const Outcome format = stowage_program({"gpus", "--format", "jsn"});
  CHECK(format.exit_code == 2);
  CHECK(format.out.empty());
  CHECK(format.err ==
        "<command line>: error: --format does not know 'jsn'\n"
        "  did you mean 'json'?\n");

  const testing::TemporaryFolder folder;
  const std::string absent = folder.path("absent");
  const Outcome configs = stowage_program({"gpus", "--configs", absent});
  CHECK(configs.exit_code == 2);
  CHECK(configs.err == "<command line>: error: --configs: '" + absent + "' is not a folder\n");

  const Outcome variable =
      stowage_program({"gpus"}, {.environment = {{"STOWAGE_CONFIGS", absent}}});
  CHECK(variable.exit_code == 2);
  CHECK(variable.err == "error: STOWAGE_CONFIGS is '" + absent + "', which is not a folder\n");
}

TEST_CASE("--quiet: the exit code is the answer, and mistakes are said all the same") {
  const auto is_silent = [](const std::vector<std::string>& words, int exit_code) {
    const Outcome outcome = stowage_program(words);
    CAPTURE(words.front());
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.empty());
  };
  is_silent({"check", "mnist-cnn", "--gpu-memory", "8GiB", "--quiet"}, 0);  // has a note
  is_silent({"check", "resnet50", "--gpu", "t4", "--batch", "999", "-q"}, 1);
  is_silent({"check", "resnet50", "vgg16", "--gpu", "t4,l4", "--format", "json", "-q"}, 0);
  is_silent({"batch", "mnist-cnn", "--gpu", "t4", "-q"}, 0);
  is_silent({"diff", "resnet18", "resnet34", "--gpu", "t4", "-q"}, 0);
  const testing::TemporaryFolder folder;
  const std::string plan = folder.path("p.yaml");
  is_silent({"plan", "mnist-cnn", "--gpu", "t4", "-q", "-o", plan}, 0);
  is_silent({"validate", plan, "--model-only", "-q"}, 0);
  CHECK(stowage_program({"check", "nosuch", "--gpu", "t4", "-q"}).err ==
        "error: there is no model 'nosuch'\n"
        "  a model is a file, '-' or one that 'stowage models' lists\n");
}

TEST_CASE("help goes to stdout and exits 0") {
  CHECK(stowage_program({"--help"}).out == program_help());
  CHECK(stowage_program({"-h"}).exit_code == 0);
  const Outcome brief = stowage_program({"gpus", "-h"});
  CHECK(brief.exit_code == 0);
  CHECK(brief.err.empty());
  CHECK(brief.out == short_help(*find_command("gpus")));
  CHECK(stowage_program({"gpus", "--help"}).out == long_help(*find_command("gpus"), false));
  CHECK(stowage_program({"help", "gpus"}).out == long_help(*find_command("gpus"), false));
  CHECK(stowage_program({"--version"}).out == fmt::format("stowage {}\n", program_version));
}

}  // namespace stowage
