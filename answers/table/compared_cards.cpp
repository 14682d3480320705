#include "answers/table/compared_cards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "answers/question/question_error.hpp"

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

/// Settings that mean one card.
Diagnostics settings_of_one_card(const CardQuestion& question) {
  Diagnostics mistakes;
  if (question.cuda_total) {
    mistakes.push_back(question_error("`gpu_memory` is of one card, and `gpu` names several"));
  }
  if (!question.calibration.empty()) {
    mistakes.push_back(question_error("`calibration` is of one card, and `gpu` names several"));
  }
  return mistakes;
}

Result<std::vector<AskedCard>> cards_of_catalogue(const CardQuestion& question) {
  auto cards = all_cards(question.configs.gpus());
  if (!cards) return tl::unexpected(std::move(cards.error()));
  std::ranges::stable_sort(*cards, {}, &Card::cuda_total);
  std::vector<AskedCard> asked;
  for (Card& card : *cards) asked.push_back({.card = std::move(card)});
  return asked;
}

}  // namespace

Result<std::vector<AskedCard>> compared_cards(const CardQuestion& question) {
  const bool is_list = question.name.find(',') != std::string::npos;
  if (!is_list && !is_all_cards(question.name)) {
    auto card = find_asked_card(question);
    if (!card) return tl::unexpected(std::move(card.error()));
    std::vector<AskedCard> one;
    one.push_back(*std::move(card));
    return one;
  }
  Diagnostics mistakes = settings_of_one_card(question);
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  if (!is_list) return cards_of_catalogue(question);
  std::vector<AskedCard> cards;
  std::set<std::string> seen;
  for (const std::string& name : names_in_list(question.name)) {
    if (name.empty() || name == present_name || is_all_cards(name)) {
      mistakes.push_back(question_error(
          fmt::format("`gpu` {}: '{}' cannot stand in a list of cards", question.name, name)));
      continue;
    }
    CardQuestion of_one = question;
    of_one.name = name;
    auto card = find_asked_card(of_one);
    if (!card) {
      std::ranges::move(card.error(), std::back_inserter(mistakes));
    } else if (!seen.insert(card->card.name).second) {
      mistakes.push_back(question_error(
          fmt::format("`gpu` {}: {} is named twice", question.name, card->card.name)));
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
