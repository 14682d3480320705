// Mistakes: collects the diagnostics while a text is read.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "estimator/base/diagnostic.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

class Mistakes {
 public:
  explicit Mistakes(SourceTextPtr source) : source_(std::move(source)) {}

  /// Adds an error; the same message at the same place is kept once. The returned reference is for
  /// adding notes and hints, and is valid until the next call.
  Diagnostic& error(const Mark& mark, std::string message, std::string hint = {});
  /// As error(), but only the first error at a place is kept, so that a mistake in a block that is
  /// instantiated many times is reported once.
  Diagnostic& error_once(const Mark& mark, std::string message, std::string hint = {});
  Diagnostic& warning_once(const Mark& mark, std::string message, std::string hint = {});
  void add(Diagnostic diagnostic) { found_.push_back(std::move(diagnostic)); }

  [[nodiscard]] Diagnostic note(const Mark& mark, std::string message) const;
  [[nodiscard]] const SourceTextPtr& source() const { return source_; }
  [[nodiscard]] bool any_errors() const;
  /// did_you_mean(), but only for the first mistakes, which are shown: the search is linear in the
  /// candidates, so a file with a thousand unknown names would take quadratic time.
  [[nodiscard]] std::string suggest(std::string_view word,
                                    std::span<const std::string_view> candidates) const;
  /// All of them, in the order of the text.
  [[nodiscard]] Diagnostics in_order() &&;

 private:
  Diagnostic& keep(Severity severity, const Mark& mark, std::string key, std::string message,
                   std::string hint);

  SourceTextPtr source_;
  Diagnostics found_;
  Diagnostic repeated_;  ///< receives the notes of a dropped duplicate
  std::set<std::tuple<int, int, std::string>> seen_;
};

}  // namespace stowage
