// Whatever bytes come, the answer is a model or a list of complaints: never a crash or a hang.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

constexpr unsigned fuzz_seed = 20260;

std::string text_of_model(const std::string& name) {
  const auto source = find_model(name, testing::source_path("/configs/models"));
  REQUIRE(source.has_value());
  return source->source->text;
}

// True where the text gave a model, or complaints that can be shown.
bool survives(const std::string& text) {
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{"fuzz", text}));
  return model ? model->output.valid() : !render(model.error()).empty();
}

}  // namespace

TEST_CASE("every prefix of a description is an answer") {
  for (const char* name : {"resnet18", "unet"}) {
    const std::string text = text_of_model(name);
    for (std::size_t length = 0; length < text.size(); length += 3) {
      CAPTURE(length);
      REQUIRE(survives(text.substr(0, length)));
    }
  }
}

TEST_CASE("descriptions with bytes changed, dropped, doubled and swapped") {
  std::mt19937 random(fuzz_seed);
  const std::vector<std::string> texts = {text_of_model("mnist-cnn"), text_of_model("resnet18"),
                                          text_of_model("gpt2")};
  const std::string bytes = "[]{}:,-&*!#|>'\"%@ \n\t0129abx.+/()~\xc3";
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(fuzz_seed);
    CAPTURE(round);
    std::string text = texts[random() % texts.size()];
    for (unsigned edit = 0; edit <= random() % 6; ++edit) {
      const std::size_t at = random() % text.size();
      const std::size_t length = 1 + random() % 12;
      switch (random() % 4) {
        case 0:
          text[at] = bytes[random() % bytes.size()];
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(random() % text.size(), text.substr(at, length));
          break;
        default:
          std::swap(text[at], text[random() % text.size()]);
      }
      if (text.empty()) text = "-";
    }
    REQUIRE(survives(text));
  }
}

TEST_CASE("random bytes, and random words of the language") {
  std::mt19937 random(fuzz_seed + 1);
  const std::vector<std::string> words = {
      "model: m\n", "inputs: ", "layers:\n", "- ",      "  - ",    "relu",      "conv2d",
      "{",          "}",        "[",         "]",       ": ",      ", ",        "from",
      "name",       "batch",    "shape",     "repeat",  "when",    "blocks:\n", "  b:\n",
      "\n",         "1",        "-1",        "3000000", "index",   "&a ",       "*a",
      "add",        "split",    "tie",       "x",       "loss:\n", "input.1"};
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(fuzz_seed);
    CAPTURE(round);
    std::string text =
        round % 4 == 0 ? "model: m\ninputs: {x: {shape: [batch, 8]}}\nlayers:\n" : "";
    for (unsigned part = random() % 40; part > 0; --part) {
      if (round % 3 == 0)
        text += static_cast<char>(random() % 256);
      else
        text += words[random() % words.size()];
    }
    REQUIRE(survives(text));
  }
}

}  // namespace stowage
