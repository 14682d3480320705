#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/completion_script.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/card/card.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

/// "geforce-rtx-3090": a card's name as one word, which --gpu takes.
std::string as_word(std::string name) {
  for (char& c : name) {
    if (c == ' ') c = '-';
  }
  return lower_case(name);
}

Result<std::string> card_words(const CatalogueRequest& request) {
  const auto cards = all_cards(request.configs.gpus());
  if (!cards) return tl::unexpected(cards.error());
  std::string words;
  for (const Card& card : *cards) words += as_word(card.name) + "\n";
  return words + "here\nall\n";
}

Result<std::string> model_words(const CatalogueRequest& request) {
  return fmt::format("{}\n", fmt::join(model_names(request.configs.models()), "\n"));
}

using Text = Result<std::string> (*)(const CatalogueRequest&);
template <std::string (*make)()>
Result<std::string> made(const CatalogueRequest&) {
  return make();
}
constexpr std::array<std::pair<std::string_view, Text>, 6> topics{{{"bash", made<bash_completion>},
                                                                   {"zsh", made<zsh_completion>},
                                                                   {"fish", made<fish_completion>},
                                                                   {"man", made<manual_page>},
                                                                   {"gpus", card_words},
                                                                   {"models", model_words}}};

}  // namespace

Result<RenderedAnswer> run_completion(const CatalogueRequest& request) {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : topics) {
    names.push_back(name);
    if (name != request.filter) continue;
    auto written = text(request);
    if (!written) return tl::unexpected(std::move(written.error()));
    RenderedAnswer answer;
    answer.report.raw = *std::move(written);
    return answer;
  }
  std::string hint = did_you_mean(request.filter, names);
  if (hint.empty()) hint = fmt::format("it is one of {}", fmt::join(names, ", "));
  return failure(command_line_error(
      fmt::format("'{}' is no shell that completion is made for", request.filter),
      std::move(hint)));
}

}  // namespace stowage
