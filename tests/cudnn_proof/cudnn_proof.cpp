// cudnn_proof [ARCHITECTURE...]: asks the real cuDNN about every convolution and every call of
// attention of the models that are shipped, for a described device of each architecture (75 80 86
// 89 90 100 120), and makes each engine that a plan could name again from its name. Needs no GPU;
// exits 77 where there is no cuDNN, 1 where an engine is not made again.
//
// Attention comes after all convolutions: its first question makes cuDNN see a driver (the
// stand-in, driver_presence.hpp), and from then on engines of sm_90 and sm_100 are compiled when
// they are finalised, some tenths of a second each.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "tests/gpu_probe/cudnn/engine_proof.hpp"
#include "tests/gpu_probe/cudnn/shipped_questions.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

constexpr std::int64_t batch = 8;

struct ProvenDevice {
  const char* architecture;
  const char* card;
};
constexpr ProvenDevice proven_devices[] = {
    {"75", "t4"},       {"80", "a100-sxm4-40gb"}, {"86", "rtx-3060-12gb"},
    {"89", "rtx-4090"}, {"90", "h200-sxm-141gb"}, {"100", "b200-sxm"},
    {"120", "rtx-5090"}};

const std::string configs = testing::source_path("/configs/");

bool is_wanted(const std::string& architecture, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::ranges::find(wanted, architecture) != wanted.end();
}

/// A line a format: "forward 671 questions, 3398 of 3398 engines; ...".
void print_counts(const char* architecture, const EngineProof& proof) {
  std::map<std::string, std::string> lines;
  for (const auto& [kind, counts] : proof.counts()) {
    std::string& line = lines[kind.first];
    line += fmt::format("{}{} {} questions, {} of {} engines", line.empty() ? "" : "; ",
                        kind.second, counts.questions, counts.made_again, counts.engines);
    if (counts.unanswered > 0) line += fmt::format(", {} without any", counts.unanswered);
  }
  for (const auto& [format, line] : lines) {
    std::printf("sm_%-4s %s  %s\n", architecture, format.c_str(), line.c_str());
  }
}

/// Each reason once, with how often and where first.
void print_refusals(const char* architecture, const EngineProof& proof) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const ProofRefusal& refusal : proof.refusals()) {
    by_reason[refusal.why].push_back(refusal.question);
  }
  for (const auto& [why, questions] : by_reason) {
    std::printf("sm_%-4s %zu times: %s; first %s\n", architecture, questions.size(), why.c_str(),
                questions.front().c_str());
  }
}

struct ProofOfDevice {
  const char* architecture;
  Card card;
  std::unique_ptr<EngineProof> proof;
};

std::vector<ProofOfDevice> proofs_of(const std::vector<std::string>& wanted) {
  std::vector<ProofOfDevice> proofs;
  for (const ProvenDevice& device : proven_devices) {
    if (!is_wanted(device.architecture, wanted)) continue;
    auto found = find_card(device.card, configs + "gpus");
    if (!found) throw std::runtime_error(render(found.error()));
    proofs.push_back(
        {device.architecture, found->card, std::make_unique<EngineProof>(found->card)});
  }
  return proofs;
}

void ask_about_attention(ProofOfDevice& device, const std::vector<std::string>& models) {
  std::set<AttentionQuery> attention;
  for (const std::string& model : models) {
    add_attention(model, batch, device.card.compute_capability, attention);
  }
  for (const AttentionQuery& query : attention) device.proof->ask(query);
}

/// Whether all engines were made again.
bool is_proven(const EngineProof& proof) {
  return std::ranges::all_of(proof.counts(), [](const auto& entry) {
    return entry.second.made_again == entry.second.engines;
  });
}

int prove_all(const std::vector<std::string>& wanted) {
  const auto version = cudnn_version();
  if (!version) {
    std::printf("SKIPPED: cuDNN is not here: %s\n", version.error().front().message.c_str());
    return 77;
  }
  const std::vector<std::string> models = model_names(configs + "models");
  ShippedConvolutions convolutions;
  for (const std::string& model : models) add_convolutions(model, batch, convolutions);
  std::printf(
      "cuDNN %s, %zu models at batch %lld: %lld convolutions put %zu questions, and a GPU's calls "
      "%s\n",
      version->c_str(), models.size(), static_cast<long long>(batch),
      static_cast<long long>(convolutions.calls), convolutions.questions.size(),
      convolutions.unequal.empty()
          ? "put the same"
          : fmt::format("put others: {}, first {}", convolutions.unequal.size(),
                        convolutions.unequal.front())
                .c_str());
  std::fflush(stdout);
  std::vector<ProofOfDevice> proofs = proofs_of(wanted);
  for (const ProofOfDevice& device : proofs) {
    for (const ConvolutionQuery& query : convolutions.questions) device.proof->ask(query);
  }
  bool all = convolutions.unequal.empty();
  for (ProofOfDevice& device : proofs) {
    ask_about_attention(device, models);
    print_counts(device.architecture, *device.proof);
    print_refusals(device.architecture, *device.proof);
    all = all && is_proven(*device.proof);
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace stowage::test

int main(int argc, char** argv) {
  try {
    return stowage::test::prove_all({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cudnn_proof: %s\n", error.what());
    return 2;
  }
}
