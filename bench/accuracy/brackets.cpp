#include "bench/accuracy/brackets.hpp"

#include <algorithm>
#include <array>

#include "bench/accuracy/csv.hpp"
#include "bench/accuracy/timm_models.hpp"

namespace stowage::accuracy {

namespace {

// The batches that timm's benchmark.py tries, from the largest down. Its defaults: Nesterov's
// momentum, weight decay, cudnn.benchmark.
constexpr std::array<std::int64_t, 18> steps{512, 384, 256, 192, 128, 96, 64, 48, 32,
                                             24,  16,  12,  8,   6,   4,  3,  2,  1};

/// The sheet is of PyTorch 1.12, which had no fused attention.
void describe(const std::string& model, const std::filesystem::path& models, Job& job) {
  static const std::map<std::string, std::map<std::string, std::string>> transformers{
      {"vit_tiny_patch16_224", {{"hidden", "192"}, {"heads", "3"}}},
      {"vit_small_patch16_224", {{"hidden", "384"}, {"heads", "6"}}},
      {"vit_base_patch16_224", {}}};
  static const std::map<std::string, std::string> names{{"mobilenetv2_100", "mobilenet_v2"},
                                                        {"mixer_b16_224", "mixer_b16"}};
  const auto transformer = transformers.find(model);
  const auto name = names.find(model);
  if (transformer != transformers.end()) {
    job.model = (models / "vit-written-out.yaml").string();
    job.arguments.insert(transformer->second.begin(), transformer->second.end());
  } else {
    job.model = name == names.end() ? model : name->second;
    as_in_timm(models, job);
  }
}

}  // namespace

std::vector<Bracket> read_brackets(const std::filesystem::path& folder,
                                   const std::filesystem::path& models) {
  std::vector<Bracket> brackets;
  for (const CsvRow& row : read_csv(folder / "rtx3090_amp_batch_brackets.csv")) {
    Bracket bracket{.model = row.at("model"),
                    .ran = static_cast<std::int64_t>(number(row, "train_batch_size"))};
    const auto step = std::find(steps.begin(), steps.end(), bracket.ran);
    if (step != steps.begin() && step != steps.end()) bracket.failed = *(step - 1);
    bracket.job = {.arguments = {{"size", row.at("train_img_size")}},
                   .gpu = "rtx-3090",
                   .optimizer = "nesterov",
                   .weight_decay = 1e-4,
                   .precision = Precision::amp_fp16,
                   .cudnn_benchmark = true};
    describe(bracket.model, models, bracket.job);
    brackets.push_back(std::move(bracket));
  }
  return brackets;
}

BracketAnswer answer(Predictor& predictor, const Bracket& bracket, double context_mib) {
  const auto fits = [&](std::int64_t batch) {
    Job job = bracket.job;
    job.batch = batch;
    return predictor.fits(job, context_mib);
  };
  return {.ran_fits = fits(bracket.ran), .failed_fits = bracket.failed > 0 && fits(bracket.failed)};
}

}  // namespace stowage::accuracy
