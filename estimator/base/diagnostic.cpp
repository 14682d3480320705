#include "estimator/base/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>

#include "estimator/base/printable.hpp"
#include "estimator/base/severity.hpp"

namespace stowage {

tl::unexpected<Diagnostics> failure(std::string message, std::string hint) {
  return failure(Diagnostic{.message = std::move(message), .hint = std::move(hint)});
}

tl::unexpected<Diagnostics> failure(Diagnostic diagnostic) {
  Diagnostics diagnostics;
  diagnostics.push_back(std::move(diagnostic));
  return tl::unexpected(std::move(diagnostics));
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

namespace {

constexpr int shown_width = 160;  // a longer line is shown around its caret

std::string_view line_of(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (begin == std::string_view::npos || begin > text.size()) return {};
  std::string_view rest = text.substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

// A line of a source as it is shown, and under which of its columns a byte of it stands.
struct ShownLine {
  std::string text;
  std::size_t begin = 0;  ///< columns [begin, end) show the span
  std::size_t end = 0;
};

// Tabs become one space, so that the caret stands under its column.
ShownLine shown_line(std::string_view line, std::size_t from, std::size_t length) {
  ShownLine shown;
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t bytes = first_piece(line.substr(at)).bytes;
    const std::string_view piece = line.substr(at, bytes);
    const std::string text = piece == "\t" ? std::string(" ") : printable_line(piece);
    if (at <= from) shown.begin = columns;
    columns += column_count(text);
    if (at < from + length) shown.end = columns;
    shown.text += text;
    at += bytes;
  }
  if (from >= line.size()) shown.begin = columns;
  shown.end = std::max(shown.end, shown.begin + 1);
  return shown;
}

void render_excerpt(std::string& out, const SourceSpan& span) {
  const std::string_view line = line_of(span.source->text, span.line);
  if (line.empty()) return;
  const auto column = static_cast<std::size_t>(std::max(span.column - 1, 0));
  std::size_t begin = 0;
  if (line.size() > shown_width && column > shown_width / 2) begin = column - shown_width / 2;
  begin = std::min(begin, line.size());
  const ShownLine shown =
      shown_line(line.substr(begin, shown_width), column - std::min(begin, column),
                 static_cast<std::size_t>(std::max(span.length, 1)));
  out += fmt::format("  {}\n", shown.text);
  out += fmt::format("  {}^{}\n", std::string(shown.begin, ' '),
                     std::string(shown.end - shown.begin - 1, '~'));
}

void render_one(std::string& out, const Diagnostic& diagnostic) {
  if (diagnostic.span.source) {
    out += printable_line(diagnostic.span.source->name);
    if (diagnostic.span.line > 0) {
      out += fmt::format(":{}:{}", diagnostic.span.line, diagnostic.span.column);
    }
    out += ": ";
  }
  out +=
      fmt::format("{}: {}\n", to_string(diagnostic.severity), printable_text(diagnostic.message));
  if (diagnostic.span.source && diagnostic.span.line > 0) render_excerpt(out, diagnostic.span);
  if (!diagnostic.hint.empty()) out += fmt::format("  {}\n", printable_text(diagnostic.hint));
  for (const Diagnostic& note : diagnostic.notes) render_one(out, note);
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment), without
// regard to case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [&](std::size_t i, std::size_t j) {
    return std::tolower(static_cast<unsigned char>(a[i])) ==
           std::tolower(static_cast<unsigned char>(b[j]));
  };
  std::vector<std::size_t> before(b.size() + 1);  // the row before the last
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> next(b.size() + 1);
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = row[j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before = std::move(row);
    row = std::move(next);
  }
  return row[b.size()];
}

}  // namespace

std::string render(std::span<const Diagnostic> diagnostics, int limit) {
  std::string out;
  int shown = 0;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (shown == limit) {
      out += fmt::format("... and {} more\n", std::ssize(diagnostics) - shown);
      break;
    }
    render_one(out, diagnostic);
    ++shown;
  }
  return out;
}

std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  constexpr std::size_t longest_word = 64;
  if (word.size() > longest_word) return std::nullopt;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  std::optional<std::string_view> best;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // 'x' is one change away from 'y', and has nothing in common with it.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto best = closest(word, candidates);
  return best ? fmt::format("did you mean '{}'?", *best) : std::string();
}

}  // namespace stowage
