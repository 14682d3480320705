#include "bench/accuracy/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "estimator/adapt/adapt.hpp"
#include "estimator/card/card.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "gpu_probe/cache/file_cache.hpp"

namespace stowage::accuracy {

namespace {

constexpr double mebibyte = 1 << 20;

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(render(result.error()));
  return *std::move(result);
}

double mib(Bytes bytes) { return static_cast<double>(bytes.count()) / mebibyte; }

std::string key_of(const Job& job) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", job.model, job.description,
                     job.arguments, job.seq.value_or(0), job.gpu, job.optimizer, job.weight_decay,
                     static_cast<int>(job.implementation), to_string(job.precision),
                     job.micro_batches, job.checkpointing, job.cudnn_benchmark, job.prefetched) +
         fmt::format("|{}|{}|{}|{}|{}|{}", job.fine_tuning.lora.value_or(""),
                     job.fine_tuning.base.value_or(""), job.fine_tuning.checkpoint.value_or(""),
                     job.fine_tuning.chunked_loss.value_or(""),
                     job.fine_tuning.offload_activations.value_or(""),
                     job.fine_tuning.optimizer_in_backward.value_or(""));
}

}  // namespace

Predictor::Predictor(std::string configs) : configs_(std::move(configs)) {}

std::shared_ptr<const StepGraph> Predictor::graph_of(const Job& job, const Card& card) {
  auto& kept = graphs_[key_of(job)];
  if (kept != nullptr) return kept;
  FoundModel found =
      job.description.empty()
          ? value_of(find_model(job.model, configs_ + "/models"))
          : FoundModel{std::make_shared<const SourceText>(SourceText{job.model, job.description})};
  std::map<std::string, std::string> arguments = job.arguments;
  if (job.checkpointing) arguments["checkpoint"] = "true";
  const ModelOptions options =
      overridden(std::move(found.options), {.seq = job.seq,
                                            .arguments = std::move(arguments),
                                            .precision = job.precision,
                                            .fine_tuning = job.fine_tuning});
  const ModelGraph model = value_of(load_adapted(found.source, options));
  LoweringSettings settings{.kernels = KernelSet::pytorch,
                            .optimizer = named_optimizer(job.optimizer).value(),
                            .micro_batches = job.micro_batches,
                            .early_updates = model.fine_tuning.optimizer_in_backward,
                            .step = model.step,
                            .compute_capability = card.compute_capability};
  settings.optimizer.weight_decay = job.weight_decay;
  settings.optimizer.implementation = job.implementation;
  settings.step.prefetch = job.prefetched;
  settings.convolutions.benchmark = job.cudnn_benchmark;
  kept = std::make_shared<const StepGraph>(value_of(lower_step(model, settings)));
  return kept;
}

WorkspaceSource& Predictor::workspaces(const std::string& gpu, const Card& card) {
  auto& source = sources_[gpu];
  if (source == nullptr) {
    source = std::make_unique<CudnnWorkspaceSource>(card, default_cache_folder());
  }
  return *source;
}

const Card& Predictor::card_of(const Job& job) {
  auto card = cards_.find(job.gpu);
  if (card == cards_.end()) {
    card = cards_.emplace(job.gpu, value_of(find_card(job.gpu, configs_ + "/gpus")).card).first;
  }
  return card->second;
}

CheckReport Predictor::report(const Job& job, std::optional<double> context_mib) {
  const Card& card = card_of(job);
  const SizedStep step =
      value_of(size_step(graph_of(job, card), job.batch, workspaces(job.gpu, card)));
  CheckSettings settings;
  settings.stack.pytorch = usual_pytorch(software_of_the_time.cuda);
  if (context_mib) {
    Bytes libraries;
    for (const RuntimeRow& row : library_rows(*step.graph, card, settings)) {
      libraries += row.bytes;
    }
    settings.context = Bytes(static_cast<std::int64_t>(*context_mib * mebibyte)) - libraries;
  }
  return check(step, card, settings);
}

Prediction Predictor::predict(const Job& job, std::optional<double> context_mib) {
  const CheckReport answer = report(job, context_mib);
  const Card& card = card_of(job);
  return {.tensors = mib(answer.tensor_bytes()),
          .reserved = mib(answer.reserved_bytes()),
          .outside = mib(answer.device_bytes - answer.reserved_bytes()),
          .outside_eager =
              mib(outside_allocator(*graph_of(job, card), card, {.stack = software_of_the_time})),
          .total = mib(answer.total_bytes),
          .origin = answer.workspace_origin};
}

bool Predictor::fits(const Job& job, double context_mib) { return report(job, context_mib).fits; }

}  // namespace stowage::accuracy
