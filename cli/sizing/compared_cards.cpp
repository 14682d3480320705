#include "cli/sizing/compared_cards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "cli/options/arguments.hpp"
#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

std::vector<std::string> names_in_list(const std::string& list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != list.npos; begin = comma + 1) {
    comma = list.find(',', begin);
    std::string name = list.substr(begin, comma == list.npos ? list.npos : comma - begin);
    const std::size_t first = name.find_first_not_of(' ');
    names.push_back(first == name.npos ? "" : name.substr(first));
  }
  return names;
}

/// Options that mean one card.
Diagnostics options_of_one_card(const CardRequest& request) {
  Diagnostics mistakes;
  if (request.cuda_total) {
    mistakes.push_back(command_line_error("--gpu-memory is of one card, and --gpu names several"));
  }
  if (!request.calibration.empty()) {
    mistakes.push_back(command_line_error("--calibration is of one card, and --gpu names several"));
  }
  return mistakes;
}

Result<std::vector<RequestedCard>> cards_of_catalogue(const CardRequest& request) {
  auto cards = all_cards(request.configs.gpus());
  if (!cards) return tl::unexpected(std::move(cards.error()));
  std::ranges::stable_sort(*cards, {}, &Card::cuda_total);
  std::vector<RequestedCard> requested;
  for (Card& card : *cards) requested.push_back({.card = std::move(card)});
  return requested;
}

}  // namespace

bool is_all_cards(const std::string& name) { return folded_name(name) == all_cards_name; }

Result<std::vector<RequestedCard>> compared_cards(const CardRequest& request) {
  const bool is_list = request.name.find(',') != std::string::npos;
  if (!is_list && !is_all_cards(request.name)) {
    auto card = requested_card(request);
    if (!card) return tl::unexpected(std::move(card.error()));
    std::vector<RequestedCard> one;
    one.push_back(*std::move(card));
    return one;
  }
  Diagnostics mistakes = options_of_one_card(request);
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  if (!is_list) return cards_of_catalogue(request);
  std::vector<RequestedCard> cards;
  std::set<std::string> seen;
  for (const std::string& name : names_in_list(request.name)) {
    if (name.empty() || name == present_name || is_all_cards(name)) {
      mistakes.push_back(command_line_error(
          fmt::format("--gpu {}: '{}' cannot stand in a list of cards", request.name, name)));
      continue;
    }
    CardRequest of_one = request;
    of_one.name = name;
    auto card = requested_card(of_one);
    if (!card) {
      std::ranges::move(card.error(), std::back_inserter(mistakes));
    } else if (!seen.insert(card->card.name).second) {
      mistakes.push_back(command_line_error(
          fmt::format("--gpu {}: {} is named twice", request.name, card->card.name)));
    } else {
      // Remarks on a card are for who asks about that one; what a name was taken for is not.
      if (card->notes.size() > 1) card->notes.resize(1);
      cards.push_back(*std::move(card));
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return cards;
}

}  // namespace stowage
