// MIG: a slice of a divided GPU as a card of its own.
//
// NVIDIA calls a slice a GPU instance and names it by its profile: "3g.20gb" has 3 of the GPU's 7
// (A30: 4) compute slices and 20 GB. CUDA shows a slice as a device with a total, multiprocessors
// and a bandwidth of its own. configs/mig-profiles.yaml says which card has which profiles; from
// that row and the card's own file follows the slice's Card (docs/gpus.md, "MIG").
//
//   request -> NamedSlice (a profile, and the rest of the name) -> MigTable of the card -> Card
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"

namespace stowage {

/// A request that names a slice: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100:3g.20gb",
/// "nvidia.com/mig-1g.10gb.me", "1g.5gb+me". What stands behind the profile ("+me", "+gfx") says
/// which media engines it has, which changes nothing here.
struct NamedSlice {
  std::string profile;  ///< "3g.20gb"
  std::string card;     ///< the rest, without "MIG"; "": only the slice is named
  /// Compute slices of a compute instance ("1c.3g.20gb": 1), which shares the memory of its GPU
  /// instance with others; 0: the whole GPU instance.
  int compute_slices = 0;
};
/// nullopt: the request names no slice.
[[nodiscard]] std::optional<NamedSlice> named_slice(std::string_view request);

struct MigProfile {
  std::string name;         ///< "3g.20gb"
  double memory_share = 1;  ///< of the card's memory and bandwidth
  Bytes total;              ///< as nvidia-smi lists it; 0: by rule
  int multiprocessors = 0;  ///< likewise
};

struct MigTable {
  std::vector<std::string> cards;  ///< stems of files in configs/gpus/
  int slices = 7;                  ///< compute slices of the whole GPU
  std::string source;
  std::vector<MigProfile> profiles;

  [[nodiscard]] const MigProfile* find(std::string_view profile) const;  ///< null: it has none
};

/// Errors: mistakes in the text, with their places.
[[nodiscard]] Result<std::vector<MigTable>> read_mig_tables(const SourceTextPtr& source);

/// The slice of `whole`. Precondition: `profile` is one of the table's.
[[nodiscard]] Card card_of_slice(const Card& whole, const MigTable& table,
                                 const MigProfile& profile, const NamedSlice& named);

}  // namespace stowage
