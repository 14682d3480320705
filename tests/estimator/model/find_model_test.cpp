#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

const std::string shipped = STOWAGE_SOURCE_DIR "/configs/models";

std::string outcome(const std::string& argument) {
  const auto source = find_model(argument, shipped);
  if (!source) return render(source.error());
  const SourceText& text = *source->source;
  return text.text.find("\nmodel: ") == std::string::npos ? "another text" : text.name;
}

}  // namespace

TEST_CASE("a model is a file, else a shipped name") {
  CHECK(outcome("gpt2") == shipped + "/gpt2.yaml");
  CHECK(outcome(shipped + "/mlp.yaml") == shipped + "/mlp.yaml");
  CHECK(outcome("GPT_2") == shipped + "/gpt2.yaml");
  CHECK(outcome("ResNet-50") == shipped + "/resnet50.yaml");
  CHECK(outcome("gtp2") == "error: there is no model 'gtp2'\n  did you mean 'gpt2'?\n");
  CHECK(outcome("something-else") ==
        "error: there is no model 'something-else'\n"
        "  a model is a file, '-' or one that 'stowage models' lists\n");
  CHECK(outcome("nets/none.yaml") == "error: there is no file 'nets/none.yaml'\n");
  CHECK(outcome(shipped) == "error: '" + shipped + "' is a folder\n");
  CHECK(outcome("") == "error: the model's name is empty\n");
}

TEST_CASE("the shipped names are sorted") {
  const std::vector<std::string> names = model_names(shipped);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::find(names.begin(), names.end(), "keras-deep-16x16") != names.end());
  CHECK(model_names("/nowhere").empty());
}

}  // namespace stowage
