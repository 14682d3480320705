// All shipped models, recorded and lowered, as tests/reference/recorded_steps.py measured them:
// equal in parameters, saved bytes and peaks, but for what is named here, with its reason.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t float_bytes = 4, index_bytes = 8;
constexpr std::int64_t tokens = 128, token_batch = 8, image_batch = 32;

/// What the recorded step has beyond the lowered one, after loading, in the first step and later.
struct NamedDifference {
  std::vector<std::string_view> models;
  std::string_view figure;
  std::array<std::int64_t, 3> bytes;  ///< of saved bytes: three times the same
};

constexpr std::int64_t labels = token_batch * tokens * index_bytes;
constexpr std::int64_t picture = float_bytes * 3 * 64 * 64;
constexpr std::int64_t t5_small_state = tokens * 512 * float_bytes;
constexpr std::int64_t t5_base_state = tokens * 768 * float_bytes;
constexpr std::int64_t t5_base_states = token_batch * t5_base_state;
constexpr std::int64_t whisper_state = float_bytes * 3000 / 2 * 768;

constexpr std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

/// What two layers of four gates of 650 lose to PyTorch's rounding as 8 storages instead of one.
constexpr std::int64_t lstm_rounding() {
  const std::int64_t weight = float_bytes * 4 * 650 * 650, offset = float_bytes * 4 * 650;
  return 4 * (rounded_up(weight) + rounded_up(offset)) - rounded_up(4 * (weight + offset));
}

const NamedDifference differences[] = {
    // The causal losses of transformers shift the labels into a padded copy and save that; a
    // description compares with labels that are shifted already, which are an input.
    {{"gpt2", "distilgpt2", "gpt2-medium", "gpt2-large-2layers", "gpt2-xl-2layers",
      "llama-2-7b-2layers", "llama-3-8b-2layers", "llama-3.2-1b-2layers", "mistral-7b-2layers",
      "mistral-7b-window-2layers"},
     "saved_bytes",
     {labels, labels, labels}},
    // The script's variable holds all that the model returns until the next step's is assigned,
    // and that has encoder_last_hidden_state. It counts where the peak lies in the update.
    {{"t5-small"}, "ideal_batch_1", {0, t5_small_state, t5_small_state}},
    {{"t5-base"}, "ideal", {0, t5_base_states, 0}},
    {{"t5-base"}, "ideal_batch_1", {0, t5_base_state, t5_base_state}},
    {{"t5-base"}, "pytorch", {0, t5_base_states, 0}},
    {{"whisper-small"}, "ideal_batch_1", {0, whisper_state, whisper_state}},
    // The weights of nn.LSTM are views of one buffer, and so are their gradients.
    {{"lstm-lm"}, "pytorch", {-lstm_rounding(), -2 * lstm_rounding(), -2 * lstm_rounding()}},
    // The reference trains DCGAN's generator on the mean of its pictures, the description on the
    // distance to target pictures.
    {{"dcgan-generator"}, "ideal", {0, -image_batch* picture, -image_batch* picture}},
    {{"dcgan-generator"}, "ideal_batch_1", {0, -picture, -picture}},
    {{"dcgan-generator"}, "pytorch", {0, -image_batch* picture, -image_batch* picture}},
};

std::array<std::int64_t, 3> named_difference(std::string_view model, std::string_view figure) {
  for (const NamedDifference& difference : differences) {
    if (difference.figure == figure &&
        std::ranges::find(difference.models, model) != difference.models.end()) {
      return difference.bytes;
    }
  }
  return {};
}

Json measured() {
  std::ifstream file(testing::source_path("/tests/reference/recorded_steps.json"));
  return Json::parse(file);
}

std::set<std::string> measured_models() {
  const Json rows = measured().at("models");
  std::set<std::string> models;
  for (const auto& [name, row] : rows.items()) models.insert(row.at("model").get<std::string>());
  return models;
}

std::int64_t figure_at(const Json& figure, std::size_t i) {
  return figure.is_array() ? figure.at(i).get<std::int64_t>() : figure.get<std::int64_t>();
}

}  // namespace

TEST_CASE("every shipped model weighs the same recorded and lowered, but for what is named") {
  const Json rows = measured().at("models");
  for (const auto& item : rows.items()) {
    const std::string& model = item.key();
    const Json& row = item.value();
    CAPTURE(model);
    CHECK(row.at("recorded").at("parameters") == row.at("lowered").at("parameters"));
    for (const std::string figure : {"saved_bytes", "ideal", "ideal_batch_1", "pytorch"}) {
      CAPTURE(figure);
      const std::array<std::int64_t, 3> named = named_difference(model, figure);
      for (std::size_t i = 0; i < named.size(); ++i) {
        CHECK(figure_at(row.at("recorded").at(figure), i) -
                  figure_at(row.at("lowered").at(figure), i) ==
              named[i]);
      }
    }
  }
}

TEST_CASE("the measured models are shipped ones") {
  const std::set<std::string> models = measured_models();
  CHECK_FALSE(models.empty());
  for (const std::string& model : models) {
    CAPTURE(model);
    CHECK(std::filesystem::exists(testing::source_path("/configs/models/" + model + ".yaml")));
  }
}

TEST_CASE("each row says with which versions it was recorded") {
  const Json rows = measured().at("models");
  for (const auto& row : rows.items()) {
    CAPTURE(row.key());
    for (const char* package : {"python", "torch", "torchvision", "timm", "transformers"}) {
      CHECK_FALSE(row.value().at("versions").at(package).get<std::string>().empty());
    }
  }
}

TEST_CASE("documents say how many of the shipped models are recorded") {
  const std::size_t recorded = measured_models().size();
  const std::size_t shipped = model_names(testing::source_path("/configs/models")).size();
  const std::string count = recorded == shipped ? fmt::format("all {}", shipped)
                                                : fmt::format("{} of the {}", recorded, shipped);
  for (const auto& said :
       {std::pair{"/docs/evidence.md", fmt::format("| {} models recorded from PyTorch", count)},
        std::pair{"/docs/record.md", fmt::format("recorded steps of {} shipped models", count)},
        std::pair{"/docs/accounting.md",
                  fmt::format("implementations of {} shipped models", count)}}) {
    CAPTURE(said.first);
    CAPTURE(said.second);
    CHECK(testing::file_text(testing::source_path(said.first)).find(said.second) !=
          std::string::npos);
  }
}

TEST_CASE("no difference is named that is not there") {
  const Json rows = measured().at("models");
  for (const NamedDifference& difference : differences) {
    for (const std::string_view model : difference.models) {
      CAPTURE(model);
      CHECK(rows.contains(std::string(model)));
    }
  }
}

}  // namespace stowage
