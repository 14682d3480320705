// How near the planner's rates are to measured training steps.
//
//   rates FOLDER
//
// FOLDER holds rtx3090_amp_nhwc_train.csv: steps of timm's models on an RTX 3090, autocast in fp16,
// channels last, PyTorch 1.12, SGD with Nesterov's momentum (huggingface/pytorch-image-models). A
// step is predicted as the sum of its kernels on the GPU, which is what a plan's compute lane takes
// with everything there. The constants of planner/problem/kernel_rates.cpp were fitted on the
// models whose name's hash (XXH3-128, in hexadecimal) ends in an even digit; the others are held
// out. Exit 1: half of the held-out ones are more than 15 percent off; 2: a file cannot be read.
#include <fmt/core.h>

#include <cmath>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/accuracy/csv.hpp"
#include "bench/accuracy/score.hpp"
#include "bench/accuracy/timm_models.hpp"
#include "estimator/base/hash.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "planner/problem/rates.hpp"

namespace {

using namespace stowage;
using accuracy::Job;

constexpr double most_error = 0.15;
const std::filesystem::path configs = STOWAGE_SOURCE_DIR "/configs";
const std::filesystem::path own_models = STOWAGE_SOURCE_DIR "/bench/accuracy/models";

struct Row {
  std::string model, family;
  bool held_out = false;
  double predicted = 0, measured = 0;  // milliseconds

  [[nodiscard]] double ratio() const { return predicted / measured; }
};

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(render(result.error()));
  return *std::move(result);
}

std::string family_of(const std::string& model) {
  if (model.starts_with("vgg")) return model.ends_with("_bn") ? "vgg with batch_norm" : "vgg";
  for (const char* family : {"resne", "mobilenet", "efficientnet", "densenet"}) {
    if (model.find(family) != model.npos) {
      return family == std::string("resne") ? "resnet" : family;
    }
  }
  return model.starts_with("vit") || model.starts_with("mixer") ? "transformer" : "other";
}

bool is_held_out(const std::string& model) {
  const char digit = hash_text(model).back();
  return (digit >= 'a' ? digit - 'a' + 10 : digit - '0') % 2 != 0;
}

/// Seconds; empty: the model is not shipped.
std::optional<double> predicted_seconds(const Job& job, const Card& card) {
  auto found = find_model(job.model, (configs / "models").string());
  if (!found) return std::nullopt;
  const ModelOptions options = overridden(std::move(found->options),
                                          {.arguments = job.arguments, .precision = job.precision});
  const ModelGraph model = value_of(load_model(found->source, options));
  LoweringSettings settings{.kernels = KernelSet::pytorch,
                            .optimizer = named_optimizer(job.optimizer).value(),
                            .step = model.step,
                            .compute_capability = card.compute_capability};
  settings.optimizer.weight_decay = job.weight_decay;
  settings.step.layout = TensorLayout::channels_last;
  const auto graph = std::make_shared<const StepGraph>(value_of(lower_step(model, settings)));
  const SizedStep step = value_of(size_storages(graph, job.batch));
  const Rates rates = make_rates(card, Host{});
  double seconds = 0;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    seconds += gpu_seconds(rates, step, NodeId::of(i));
  }
  return seconds;
}

Job job_of(const accuracy::CsvRow& row) {
  Job job{.arguments = {{"size", row.at("train_img_size")}},
          .gpu = "rtx-3090",
          .batch = static_cast<std::int64_t>(accuracy::number(row, "train_batch_size")),
          .optimizer = "nesterov",
          .weight_decay = 1e-4,
          .precision = Precision::amp_fp16};
  accuracy::describe_timm(row.at("model"), own_models, job);
  if (row.at("model").starts_with("convnext")) job.arguments["depth_dropout"] = "0";
  return job;
}

struct Summary {
  std::size_t rows = 0;
  double ratio = 0, error = 0;  // medians; the error without its sign
};

template <typename Chosen>
Summary summary(const std::vector<Row>& rows, Chosen chosen) {
  std::vector<double> ratios, errors;
  for (const Row& row : rows) {
    if (!chosen(row)) continue;
    ratios.push_back(row.ratio());
    errors.push_back(std::abs(row.ratio() - 1));
  }
  return {ratios.size(), accuracy::percentile(ratios, 0.5), accuracy::percentile(errors, 0.5)};
}

void print(const std::string& name, const Summary& summary) {
  fmt::print("{:>7} {:>9.2f} {:>9.1f}%  {}\n", summary.rows, summary.ratio, 100 * summary.error,
             name);
}

int run(const std::filesystem::path& folder) {
  const Card card = value_of(find_card("rtx-3090", (configs / "gpus").string())).card;
  std::vector<Row> rows;
  std::vector<std::string> without;
  for (const accuracy::CsvRow& line : accuracy::read_csv(folder / "rtx3090_amp_nhwc_train.csv")) {
    const std::string& model = line.at("model");
    if (const auto seconds = predicted_seconds(job_of(line), card)) {
      rows.push_back({model, family_of(model), is_held_out(model), 1e3 * *seconds,
                      accuracy::number(line, "train_step_ms")});
    } else {
      without.push_back(model);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.family < b.family; });
  fmt::print("{:>12} {:>12} {:>7}  {:<8}  model\n", "predicted ms", "measured ms", "ratio", "half");
  for (const Row& row : rows) {
    fmt::print("{:>12.1f} {:>12.1f} {:>7.2f}  {:<8}  {}\n", row.predicted, row.measured,
               row.ratio(), row.held_out ? "held out" : "fitted", row.model);
  }
  for (const std::string& model : without) fmt::print("not compared: {} is not shipped\n", model);

  fmt::print("\n{:>7} {:>9} {:>10}  medians of\n", "models", "ratio", "error");
  std::map<std::string, int> families;
  for (const Row& row : rows) ++families[row.family];
  for (const auto& family : families) {
    const std::string& name = family.first;
    print(name, summary(rows, [&](const Row& row) { return row.family == name; }));
  }
  print("the fitted half", summary(rows, [](const Row& row) { return !row.held_out; }));
  const Summary held_out = summary(rows, [](const Row& row) { return row.held_out; });
  print("the held-out half", held_out);
  return held_out.error <= most_error ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
