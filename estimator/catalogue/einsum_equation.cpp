#include "estimator/catalogue/einsum_equation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace stowage {

namespace {

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool has_label(std::string_view labels, char label) {
  return labels.find(label) != std::string_view::npos;
}

constexpr char ellipsis = '.';  // stands for all of its axes until they are counted

/// The labels of an operand or of the result, with one '.' for an ellipsis.
tl::expected<std::string, std::string> read_labels(std::string_view text) {
  std::string labels;
  while (!text.empty()) {
    const char c = text.front();
    const bool dots = text.substr(0, 3) == "...";
    text.remove_prefix(dots ? 3 : 1);
    if (c == ' ') continue;
    if (!dots && !is_label(c)) {
      return tl::unexpected(c == '.' ? std::string("an ellipsis has three points")
                                     : fmt::format("'{}' is no letter", c));
    }
    if (dots && has_label(labels, ellipsis)) {
      return tl::unexpected(std::string("two ellipses in one operand"));
    }
    labels += c;
  }
  return labels;
}

/// The last `count` axes of an ellipsis, in order.
std::string ellipsis_labels(std::size_t count) {
  std::string labels;
  for (std::size_t i = count; i-- > 0;) labels += static_cast<char>('9' - static_cast<int>(i));
  return labels;
}

std::string with_ellipsis(std::string labels, std::size_t axes) {
  const std::size_t at = labels.find(ellipsis);
  if (at != std::string::npos) labels.replace(at, 1, ellipsis_labels(axes));
  return labels;
}

std::string implied_result(const std::vector<std::string>& operands) {
  std::string all;
  for (const std::string& labels : operands) all += labels;
  std::string result;
  for (const char label : all) {
    if (is_label(label) && std::count(all.begin(), all.end(), label) == 1) result += label;
  }
  std::sort(result.begin(), result.end());
  return std::string(1, ellipsis) + result;
}

std::optional<std::string> result_problem(const std::string& result,
                                          const std::vector<std::string>& operands) {
  for (const char label : result) {
    const bool known = std::any_of(operands.begin(), operands.end(),
                                   [&](const std::string& of) { return has_label(of, label); });
    if (label != ellipsis && !known) {
      return fmt::format("no operand has '{}' of the result", label);
    }
    if (std::count(result.begin(), result.end(), label) > 1) {
      return fmt::format("'{}' stands twice in the result", label);
    }
  }
  return std::nullopt;
}

/// The number of axes of the ellipsis in an operand of `rank` axes.
tl::expected<std::size_t, std::string> ellipsis_axes(const std::string& labels, std::size_t rank) {
  constexpr std::size_t most = 10;  // digits
  const bool open = has_label(labels, ellipsis);
  const std::size_t named = labels.size() - (open ? 1 : 0);
  if (named > rank || (!open && named != rank) || rank - named > most) {
    std::string written = labels;
    if (open) written.replace(labels.find(ellipsis), 1, "...");
    return tl::unexpected(
        fmt::format("'{}' names {} axes, and the operand has {}", written, named, rank));
  }
  return rank - named;
}

/// The labels for which `holds` is true.
template <class Holds>
std::string labels_where(std::string_view labels, Holds holds) {
  std::string found;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(found), holds);
  return found;
}

}  // namespace

tl::expected<EinsumEquation, std::string> read_equation(std::string_view text,
                                                        std::span<const std::size_t> ranks) {
  EinsumEquation equation;
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const std::size_t comma = left.find(',');
    auto labels = read_labels(left.substr(0, comma));
    if (!labels) return tl::unexpected(labels.error());
    equation.operands.push_back(*std::move(labels));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.operands.size() != ranks.size()) {
    return tl::unexpected(fmt::format("it names {} operands, and there are {}",
                                      equation.operands.size(), ranks.size()));
  }
  equation.result = implied_result(equation.operands);
  if (arrow != std::string_view::npos) {
    auto result = read_labels(text.substr(arrow + 2));
    if (!result) return tl::unexpected(result.error());
    if (auto problem = result_problem(*result, equation.operands)) {
      return tl::unexpected(*std::move(problem));
    }
    equation.result = *std::move(result);
  }
  std::size_t widest = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto axes = ellipsis_axes(equation.operands[i], ranks[i]);
    if (!axes) return tl::unexpected(axes.error());
    equation.operands[i] = with_ellipsis(equation.operands[i], *axes);
    widest = std::max(widest, *axes);
  }
  equation.result = with_ellipsis(equation.result, widest);
  return equation;
}

std::string distinct_labels(std::string_view labels) {
  std::string distinct;
  for (const char label : labels) {
    if (!has_label(distinct, label)) distinct += label;
  }
  return distinct;
}

EinsumEquation reduced_equation(const EinsumEquation& equation, std::span<const Shape> shapes) {
  EinsumEquation reduced;
  std::string kept;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string& labels = equation.operands[i];
    reduced.operands.push_back(labels_where(distinct_labels(labels), [&](char label) {
      return shapes[i][labels.find(label)] != Affine(1);
    }));
    kept += reduced.operands.back();
  }
  reduced.result =
      labels_where(equation.result, [&](char label) { return has_label(kept, label); });
  return reduced;
}

std::vector<EinsumStep> einsum_steps(const EinsumEquation& equation) {
  // PyTorch's order of all axes: the result's, then those that are summed, in the alphabet's order.
  std::string order = equation.result, summed;
  for (const std::string& labels : equation.operands) {
    for (const char label : labels) {
      if (!has_label(order, label) && !has_label(summed, label)) summed += label;
    }
  }
  std::sort(summed.begin(), summed.end());
  order += summed;
  std::vector<EinsumStep> steps;
  std::string so_far =
      labels_where(order, [&](char label) { return has_label(equation.operands[0], label); });
  for (std::size_t i = 1; i < equation.operands.size(); ++i) {
    const auto goes_on = [&](char label) {  // a later operand or the result has it
      if (has_label(equation.result, label)) return true;
      return std::any_of(equation.operands.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         equation.operands.end(),
                         [&](const std::string& of) { return has_label(of, label); });
    };
    EinsumStep step;
    step.left = i == 1 ? equation.operands[0] : so_far;
    step.right = equation.operands[i];
    for (const char label : order) {
      const bool left = has_label(step.left, label), right = has_label(step.right, label);
      if (!left && !right) continue;
      if (goes_on(label)) {
        (left && right ? step.batch : left ? step.left_only : step.right_only) += label;
        step.result += label;
      } else {
        (left && right ? step.contracted : left ? step.left_sums : step.right_sums) += label;
      }
    }
    so_far = step.result;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace stowage
