#include "answers/question/card_question.hpp"

#include "estimator/base/name_match.hpp"

namespace stowage {

bool is_all_cards(const std::string& name) { return folded_name(name) == all_cards_name; }

bool names_several_cards(const CardQuestion& question) {
  return question.name.find(',') != std::string::npos || is_all_cards(question.name);
}

}  // namespace stowage
