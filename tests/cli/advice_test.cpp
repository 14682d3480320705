#include "cli/options/advice.hpp"

#include <doctest/doctest.h>

#include "answers/question/shell_word.hpp"
#include "tests/cli/program.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::typed;

namespace {

// What stands behind `opening` on a line of its own.
std::string line_after(const std::string& text, const std::string& opening) {
  const std::size_t at = text.find(opening);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + opening.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

const std::string wide_net = R"(model: wide
inputs:
  image: {shape: [batch, 3, 512, 512]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {channels: 64, kernel: 3, padding: 1}
  - relu
  - adaptive_avg_pool2d: {size: 1}
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";

}  // namespace

TEST_CASE("a word is quoted where a shell would change it") {
  CHECK(shell_word("net.yaml") == "net.yaml");
  CHECK(shell_word("width=0.5") == "width=0.5");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("my net.yaml") == "'my net.yaml'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("a$HOME;b") == "'a$HOME;b'");
  CHECK(shell_word("~") == "'~'");
  CHECK(shell_word("a\x1b'\xff\n") == "$'a\\x1b\\'\\xff\\x0a'");
}

TEST_CASE("quoted words come out of a shell as they went in") {
  for (const std::string word :
       {"a b", "it's $HOME `x` \\", "a\nb", "\x1b[31m", "-", "*", "\xff'"}) {
    CHECK(typed("printf %s " + shell_word(word)).out == word);
  }
}

TEST_CASE("advice repeats the question and leaves out how it was answered") {
  const TypedWords words{.positionals = {"my net.yaml"},
                         .options = {{"gpu", {"rtx 3090"}},
                                     {"batch", {"64"}},
                                     {"format", {"json"}},
                                     {"verbose", {""}},
                                     {"deterministic", {""}},
                                     {"set", {"width=2", "depth=-1"}}}};
  CHECK(advice(words, "check") ==
        "stowage check 'my net.yaml' --batch 64 --gpu 'rtx 3090' --deterministic --set width=2 "
        "--set depth=-1");
  CHECK(advice(words, "batch", {.drop = {"deterministic", "set"}}) ==
        "stowage batch 'my net.yaml' --gpu 'rtx 3090'");
  CHECK(advice(words, "check", {.set = {{"batch", "8"}}, .drop = {"deterministic", "set"}}) ==
        "stowage check 'my net.yaml' --batch 8 --gpu 'rtx 3090'");
}

TEST_CASE("what check advises can be typed as printed, and is true") {
  const TemporaryFolder folder;
  (void)folder.file("my net.yaml", wide_net);
  const testing::Circumstances there{.folder = folder.path()};
  const Outcome checked = typed("stowage check 'my net.yaml' --gpu-memory 4GiB --batch 64", there);
  CHECK(checked.exit_code == 1);
  const std::string batch = line_after(checked.out, "the largest batch that fits is ");
  REQUIRE_FALSE(batch.empty());
  const std::string largest = batch.substr(0, batch.find(':'));
  const std::string at_largest = batch.substr(batch.find(": ") + 2);
  CHECK(at_largest == "stowage check 'my net.yaml' --batch " + largest + " --gpu-memory 4GiB");
  CHECK(typed(at_largest, there).exit_code == 0);
  CHECK(typed("stowage check 'my net.yaml' --batch " + std::to_string(std::stoi(largest) + 1) +
                  " --gpu-memory 4GiB",
              there)
            .exit_code == 1);
  const std::string plan = line_after(checked.out, "it may run with part of it on the host: ");
  CHECK(plan == "stowage plan 'my net.yaml' --batch 64 --gpu-memory 4GiB");
  const Outcome planned = typed(plan, there);
  CHECK_MESSAGE(planned.exit_code == 0, planned.err);
}

TEST_CASE("settings that a plan of ours lacks come as a plan for PyTorch") {
  const Outcome checked =
      stowage_program({"check", "-", "--gpu", "gtx-960-2gb", "--batch", "64", "--layout", "nhwc",
                       "--alloc-conf", "expandable_segments:True"},
                      {.input = wide_net});
  CHECK(checked.exit_code == 1);
  CHECK(line_after(checked.out, "it may run with part of it on the host: ") ==
        "stowage plan - --batch 64 --gpu gtx-960-2gb --runtime pytorch --layout nhwc");
}

TEST_CASE("without a card check says what gives an answer without one") {
  const Outcome missing = stowage_program({"check", "mnist-cnn", "--batch", "32"});
  CHECK(missing.exit_code == 2);
  CHECK(missing.err ==
        "<command line>: error: a card is missing: --gpu NAME or --gpu-memory SIZE\n"
        "  stowage gpus lists the names; without a card, stowage summary mnist-cnn --batch 32 says "
        "what the tensors take\n");
  const Outcome summary = typed("stowage summary mnist-cnn --batch 32");
  CHECK(summary.exit_code == 0);
  CHECK(summary.out.find("Training with ") != std::string::npos);
}

}  // namespace stowage
