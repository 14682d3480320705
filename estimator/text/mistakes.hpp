// Mistakes: the diagnostics of one reading of one text, collected while the reading goes on.
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

  /// The same message at the same place is kept once. The reference lasts until the next call;
  /// add notes and hints through it.
  Diagnostic& error(const Mark& mark, std::string message, std::string hint = {});
  /// As `error`, but the first at a place stands for all: a layer of a block that is instantiated
  /// many times has its mistake reported once.
  Diagnostic& error_once(const Mark& mark, std::string message, std::string hint = {});
  Diagnostic& warning_once(const Mark& mark, std::string message, std::string hint = {});
  void add(Diagnostic diagnostic) { found_.push_back(std::move(diagnostic)); }

  [[nodiscard]] Diagnostic note(const Mark& mark, std::string message) const;
  [[nodiscard]] const SourceTextPtr& source() const { return source_; }
  [[nodiscard]] bool any_errors() const;
  /// did_you_mean, while it is likely to be shown: the search is linear in the candidates, and a
  /// file of a thousand dangling names would make it quadratic.
  [[nodiscard]] std::string suggest(std::string_view word,
                                    std::span<const std::string_view> candidates) const;
  /// All of them, in the order of the text.
  [[nodiscard]] Diagnostics in_order() &&;

 private:
  Diagnostic& keep(Severity severity, const Mark& mark, std::string key, std::string message,
                   std::string hint);

  SourceTextPtr source_;
  Diagnostics found_;
  Diagnostic repeated_;  ///< takes the notes of one that was dropped
  std::set<std::tuple<int, int, std::string>> seen_;
};

}  // namespace stowage
