// CardQuestion: which card is asked about.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answers/question/config_directory.hpp"
#include "estimator/base/bytes.hpp"

namespace stowage {

/// The name that stands for the card of this machine.
inline constexpr std::string_view present_name = "here";
/// The name that stands for every card of the catalogue.
inline constexpr std::string_view all_cards_name = "all";

/// At least one of `name` and `cuda_total` is given.
struct CardQuestion {
  /// However it is spelt, present_name or a card's file; in a table also several, with commas
  /// between them, or all_cards_name. Empty: a generic card of `cuda_total`.
  std::string name;
  std::optional<Bytes> cuda_total;
  std::string total_source = "given";        ///< what a plan's file says of a generic card's total
  std::optional<double> compute_capability;  ///< of a generic card
  std::string calibration;                   ///< a file; empty: none
  ConfigDirectory configs;
};

/// Whether it names several cards: a list, or all. Only a table answers for these.
[[nodiscard]] bool names_several_cards(const CardQuestion& question);
/// Whether `name` is all_cards_name, however it is spelt.
[[nodiscard]] bool is_all_cards(const std::string& name);

}  // namespace stowage
