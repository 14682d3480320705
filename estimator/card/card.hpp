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

/// What a process was seen to take of the card outside its allocator.
struct ProcessMeasurement {
  Runtime runtime = default_runtime;
  SoftwareStack stack;
  std::optional<Bytes> context, cublas, cudnn;
  std::string source;
  bool calibrated = false;  ///< from a calibration, which goes before the rest
};

/// A total that was seen on such a card; drivers, ECC and board makers make them differ.
struct ObservedTotal {
  std::optional<Bytes> nvml, cuda;
  std::string source;
};

/// What kernels of a kind were seen to reach, of the rates; none: it was not seen.
struct KernelShare {
  KernelKind kind = KernelKind::pointwise;
  std::optional<double> arithmetic;  ///< of the format's products
  std::optional<double> bandwidth;
};

struct Card {
  std::string name;               ///< "GeForce RTX 3090"
  std::string architecture;       ///< "Ampere"
  double compute_capability = 0;  ///< 8.6
  bool professional = false;      ///< a board for workstations or data centres, not for games
  int sm_count = 0;
  Bytes memory;              ///< on the maker's box; 0: not given
  Bytes nvml_total;          ///< what nvidia-smi prints
  Bytes cuda_total;          ///< cudaMemGetInfo's total: the ceiling
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
  double kernel_latency = 0;               ///< seconds that the least kernel takes; 0: not measured
  std::vector<KernelShare> kernel_shares;  ///< measured; a kind at most once
  std::string confidence;
  std::vector<ProcessMeasurement> measurements;
  std::vector<ObservedTotal> observed_totals;
  std::string
      cudnn_device_json;  ///< what cuDNN is told about the card; empty: not served (cc < 7.5)
  std::vector<std::string> by_rule;  ///< keys that the card's file lacks (card_rules.hpp)
  /// Keys of rates that a calibration gave: what the card reached, not what it is specified for.
  std::vector<std::string> calibrated;
};

/// What its user should know of the card's figures: the totals that were seen where they differ
/// from the one taken, and what is by rule and matters.
[[nodiscard]] std::vector<std::string> remarks_on(const Card& card);

/// A card by name: "rtx3090", "RTX 3090", "GeForce RTX 3090" and "NVIDIA GeForce RTX 3090" are one.
/// Errors: unknown (with a suggestion), ambiguous (lists the memory sizes: "gtx960" takes the
/// smallest and says so in `note`), a malformed file with its place.
struct FoundCard {
  Card card;
  std::string note;  ///< what was assumed; empty: nothing
};
[[nodiscard]] Result<FoundCard> find_card(const std::string& name, const std::string& directory);
/// Every card of the directory, sorted by name.
[[nodiscard]] Result<std::vector<Card>> all_cards(const std::string& directory);
/// A generic card of `total` bytes (a bare --gpu-memory): compute capability 8.6 unless given,
/// with an RTX 3090's rates; its name says that it is generic.
[[nodiscard]] Card generic_card(Bytes total, double compute_capability = 8.6);

}  // namespace stowage
