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
    describe_timm(bracket.model, models, bracket.job);
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
