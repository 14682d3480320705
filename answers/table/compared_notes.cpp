#include "answers/table/compared_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace stowage {

namespace {

bool names_its_model(const Diagnostic& one, const std::string& model) {
  return one.span.source != nullptr ||
         one.message.find(fmt::format("'{}'", model)) != std::string::npos;
}

std::string first_and_others(const std::vector<std::string>& models) {
  if (models.size() == 1) return models.front();
  if (models.size() == 2) return fmt::format("{} and {}", models[0], models[1]);
  return fmt::format("{} and {} others", models.front(), models.size() - 1);
}

std::string text_of(const Diagnostic& one) { return render(std::span(&one, 1)); }

}  // namespace

Diagnostics compared_notes(const std::vector<NotesOfModel>& by_model, std::size_t models) {
  Diagnostics merged;
  std::map<std::string, std::size_t> place;       // of a text in `merged`
  std::vector<std::vector<std::string>> sharing;  // by place: the models to be named
  for (const NotesOfModel& of : by_model) {
    for (const Diagnostic& one : of.notes) {
      const auto [at, is_new] = place.emplace(text_of(one), merged.size());
      if (is_new) {
        merged.push_back(one);
        sharing.emplace_back();
      }
      std::vector<std::string>& named = sharing[at->second];
      const bool is_named = !named.empty() && named.back() == of.model;
      if (!is_named && !names_its_model(one, of.model)) named.push_back(of.model);
    }
  }
  if (models > 1) {
    for (std::size_t i = 0; i < merged.size(); ++i) {
      if (sharing[i].empty()) continue;
      merged[i].message = fmt::format("{}: {}", first_and_others(sharing[i]), merged[i].message);
    }
  }
  std::stable_partition(merged.begin(), merged.end(),
                        [](const Diagnostic& one) { return one.severity == Severity::error; });
  return merged;
}

}  // namespace stowage
