// The shipped descriptions with their words changed: each gives a model that is lowered and sized,
// or complaints, and never a crash or a hang. STOWAGE_MUTATIONS says how many to try, STOWAGE_SEED
// from where, and STOWAGE_MUTANT names a file in which the one being tried is kept.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "estimator/check/check.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

constexpr unsigned mutation_seed = 20261;
// A search for an arena grows faster than the step that it is for.
constexpr std::size_t most_arena_nodes = 3000;

struct Word {
  std::size_t begin = 0;
  std::size_t length = 0;
};

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

std::vector<Word> words_of(const std::string& text) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    while (i < text.size() && is_word_character(text[i])) ++i;
    if (i > begin) words.push_back({begin, i - begin});
    if (i == begin) ++i;
  }
  return words;
}

/// What a word is replaced by: numbers at the edges, the catalogue's names, the language's keys.
std::vector<std::string> replacements() {
  std::vector<std::string> all{"0",     "1",       "-1",         "2",
                               "3",     "7",       "64",         "100000",
                               "0.5",   "1e308",   "-0.0",       "4611686018427387904",
                               "true",  "batch",   "2 * batch",  "9223372036854775807",
                               "seq",   "index",   "[1, 2]",     "[batch, -1]",
                               "{}",    "[]",      "",           "\"\"",
                               "input", "input.1", "input.0",    "1 / 0",
                               "same",  "bool",    "int64",      "float16",
                               "adam",  "lamb",    "adafactor",  "adam8bit",
                               "fused", "to_zero", "mixed-bf16", "amp-fp16",
                               "fp64",  "loss",    "padding"};
  for (const char* key :
       {"name", "from", "repeat", "when", "tie", "frozen", "checkpoint", "shape", "dtype"}) {
    all.emplace_back(key);
  }
  for (const OperatorRow& row : operator_catalogue()) {
    all.emplace_back(row.name);
    for (const AttributeSpec& spec : row.attributes) all.emplace_back(spec.name);
  }
  return all;
}

std::string mutated(std::string text, const std::vector<std::string>& others,
                    std::mt19937& random) {
  for (unsigned edit = 0; edit <= random() % 3; ++edit) {
    const std::vector<Word> words = words_of(text);
    if (words.empty()) return text;
    const Word word = words[random() % words.size()];
    const Word other = words[random() % words.size()];
    switch (random() % 5) {
      case 0:  // a word of the same text
        text.replace(word.begin, word.length, text.substr(other.begin, other.length));
        break;
      case 1: {  // a line twice, or gone
        const std::size_t begin = text.rfind('\n', word.begin) + 1;
        const std::size_t end = std::min(text.find('\n', word.begin), text.size() - 1) + 1;
        if (random() % 2 == 0)
          text.insert(begin, text.substr(begin, end - begin));
        else
          text.erase(begin, end - begin);
        break;
      }
      case 2:  // an attribute more
        text.insert(word.begin, fmt::format("{}: {}, ", others[random() % others.size()],
                                            others[random() % others.size()]));
        break;
      default:
        text.replace(word.begin, word.length, others[random() % others.size()]);
    }
  }
  return text;
}

/// Everything that `check` does with the text. The number of steps that were sized.
int weigh(const std::string& text) {
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{"mutant", text}));
  if (!model) {
    REQUIRE(!render(model.error()).empty());
    return 0;
  }
  int sized = 0;
  const auto workspaces = rule_workspace_source(8.6);
  for (const Runtime runtime : {Runtime::stowage, Runtime::pytorch}) {
    for (const Mode mode : {Mode::train, Mode::inference}) {
      LoweringSettings settings{.kernels = kernel_set_of(runtime),
                                .mode = mode,
                                .optimizer = model->optimizer,
                                .step = model->step};
      if (has_master_weights(model->precision)) {
        settings.optimizer.master_weights = MasterWeights::weights;
      }
      auto graph = lower(*model, settings);
      if (!graph) {
        REQUIRE(!render(graph.error()).empty());
        continue;
      }
      const bool has_arena = runtime == Runtime::stowage;
      if (has_arena && graph->nodes.size() > most_arena_nodes) continue;
      const auto step =
          size_step(std::make_shared<const StepGraph>(*std::move(graph)), 3, *workspaces);
      if (!step) {
        REQUIRE(!render(step.error()).empty());
        continue;
      }
      const CheckReport report = check(*step, generic_card(8_GiB), {.runtime = runtime});
      REQUIRE(report.tensor_bytes() >= Bytes());
      ++sized;
    }
  }
  return sized;
}

}  // namespace

TEST_CASE("shipped descriptions with their words changed") {
  const char* const wish = std::getenv("STOWAGE_MUTATIONS");
  const int rounds = wish != nullptr ? std::atoi(wish) : 200;
  const char* const first = std::getenv("STOWAGE_SEED");
  const char* const file = std::getenv("STOWAGE_MUTANT");
  std::mt19937 random(first != nullptr ? static_cast<unsigned>(std::atoi(first)) : mutation_seed);
  const std::string directory = testing::source_path("/configs/models");
  const std::vector<std::string> names = model_names(directory);
  const std::vector<std::string> others = replacements();
  int sized = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string& name = names[random() % names.size()];
    const auto found = find_model(name, directory);
    REQUIRE(found.has_value());
    const std::string text = mutated(found->source->text, others, random);
    if (file != nullptr) std::ofstream(file) << text;
    CAPTURE(round);
    CAPTURE(text);
    sized += weigh(text);
  }
  MESSAGE(rounds, " mutants, ", sized, " steps sized");
  CHECK(sized > 0);
}

}  // namespace stowage
