// Card: a GPU as the catalogue (configs/gpus/, one YAML file a card) describes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/base/kernel_kind.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

/// Memory that a process was measured to take outside its allocator.
struct ProcessMeasurement {
  Runtime runtime = default_runtime;
  SoftwareStack stack;
  std::optional<Bytes> context, cublas, cudnn;
  std::string source;
  bool calibrated = false;  ///< from a calibration, which takes precedence
};

/// A total that was observed on such a card. Totals differ with the driver, ECC and the board
/// maker.
struct ObservedTotal {
  std::optional<Bytes> nvml, cuda;
  std::string source;
};

/// Measured shares of the card's rates that kernels of a kind reach; none: not measured.
struct KernelShare {
  KernelKind kind = KernelKind::pointwise;
  std::optional<double> arithmetic;  ///< of the matrix product rate of the format
  std::optional<double> bandwidth;
};

struct Card {
  std::string name;               ///< "GeForce RTX 3090"
  std::string architecture;       ///< "Ampere"
  double compute_capability = 0;  ///< 8.6
  bool professional = false;      ///< a board for workstations or data centres, not for games
  int sm_count = 0;
  Bytes memory;              ///< as advertised; 0: not given
  Bytes nvml_total;          ///< what nvidia-smi prints
  Bytes cuda_total;          ///< cudaMemGetInfo's total: the limit for a process
  std::string total_source;  ///< where the totals come from, and whether cuda_total was derived
  Bytes context;             ///< CUDA context with lazily loaded kernels, outside any allocator
  std::string context_source;
  double memory_bandwidth = 0;  ///< bytes a second
  double fp32_flops = 0;        ///< a second, vector units
  double tf32_flops = 0;        ///< dense tensor cores; 0: none
  double fp16_flops = 0;        ///< dense tensor cores, fp32 accumulation; else vector
  double h2d_bandwidth = 0;     ///< bytes a second, pinned
  double d2h_bandwidth = 0;
  double pageable_bandwidth = 0;
  std::string pcie;  ///< "gen4 x16"
  std::string rate_source;
  double kernel_latency = 0;               ///< seconds of an empty kernel; 0: not measured
  std::vector<KernelShare> kernel_shares;  ///< measured; at most one for each kind
  std::string confidence;
  std::vector<ProcessMeasurement> measurements;
  std::vector<ObservedTotal> observed_totals;
  /// The description of the card that is given to cuDNN; empty: cuDNN does not serve it
  /// (below 7.5).
  std::string cudnn_device_json;
  std::vector<std::string> by_rule;  ///< keys that the file lacks, filled in by card_rules.hpp
  /// Keys of rates that a calibration measured; other rates are specifications.
  std::vector<std::string> calibrated;
};

/// Remarks for the user about the card's figures: observed totals that differ from the one used,
/// and important figures that are filled in by rule.
[[nodiscard]] std::vector<std::string> remarks_on(const Card& card);

/// The result of find_card().
struct FoundCard {
  Card card;
  std::string note;  ///< says what was assumed; empty: nothing
};
/// Finds a card by name: "rtx3090", "RTX 3090", "GeForce RTX 3090" and "NVIDIA GeForce RTX 3090"
/// name one card, "a100-40gb mig 1g.5gb" a slice of one (mig_slice.hpp). A name that several cards
/// have is that of the one whose total is nearest to `total`; without a total it is refused where
/// their memory differs ("gtx960"), and else the first is taken, which `note` says. Errors: unknown
/// (with a suggestion, or whose processor it is), several cards, a malformed file with its place.
[[nodiscard]] Result<FoundCard> find_card(const std::string& name, const std::string& directory,
                                          std::optional<Bytes> total = std::nullopt);
/// Every card of the directory, sorted by name.
[[nodiscard]] Result<std::vector<Card>> all_cards(const std::string& directory);
/// A generic card of `total` bytes (a bare --gpu-memory): compute capability 8.6 unless given,
/// with an RTX 3090's rates; its name says that it is generic.
[[nodiscard]] Card generic_card(Bytes total, double compute_capability = 8.6);

}  // namespace stowage
