#include "estimator/text/mistakes.hpp"

#include <algorithm>

namespace stowage {

namespace {

constexpr std::size_t most_kept = 10'000;     // of which 20 are shown, and the rest counted
constexpr std::size_t longest_message = 500;  // a name may be the whole of a file

std::string shortened(std::string message) {
  if (message.size() <= longest_message) return message;
  message.resize(longest_message);
  return message + "...";
}

}  // namespace

Diagnostic& Mistakes::keep(Severity severity, const Mark& mark, std::string key,
                           std::string message, std::string hint) {
  if (found_.size() >= most_kept || !seen_.emplace(mark.line, mark.column, std::move(key)).second) {
    repeated_ = {};
    return repeated_;
  }
  found_.push_back({.severity = severity,
                    .message = shortened(std::move(message)),
                    .span = span_of(source_, mark),
                    .hint = std::move(hint)});
  return found_.back();
}

Diagnostic& Mistakes::error(const Mark& mark, std::string message, std::string hint) {
  std::string key = message;
  return keep(Severity::error, mark, std::move(key), std::move(message), std::move(hint));
}

Diagnostic& Mistakes::error_once(const Mark& mark, std::string message, std::string hint) {
  return keep(Severity::error, mark, "", std::move(message), std::move(hint));
}

Diagnostic& Mistakes::warning_once(const Mark& mark, std::string message, std::string hint) {
  return keep(Severity::warning, mark, "warning", std::move(message), std::move(hint));
}

Diagnostic Mistakes::note(const Mark& mark, std::string message) const {
  return {.severity = Severity::note,
          .message = shortened(std::move(message)),
          .span = span_of(source_, mark)};
}

bool Mistakes::any_errors() const {
  return std::any_of(found_.begin(), found_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string Mistakes::suggest(std::string_view word,
                              std::span<const std::string_view> candidates) const {
  constexpr std::size_t most_suggestions = 40;
  return found_.size() < most_suggestions ? did_you_mean(word, candidates) : std::string();
}

Diagnostics Mistakes::in_order() && {
  std::stable_sort(found_.begin(), found_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.span.line, a.span.column) < std::tie(b.span.line, b.span.column);
  });
  return std::move(found_);
}

}  // namespace stowage
