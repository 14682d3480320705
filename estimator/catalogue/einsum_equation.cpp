#include "estimator/catalogue/einsum_equation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

namespace {

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool has_label(std::string_view labels, char label) {
  return labels.find(label) != std::string_view::npos;
}

tl::expected<std::string, std::string> read_labels(std::string_view text) {
  std::string labels;
  for (const char c : text) {
    if (c == ' ') continue;
    if (c == '.') return tl::unexpected(std::string("an ellipsis is not taken; name the axes"));
    if (!is_label(c)) return tl::unexpected(fmt::format("'{}' is no letter", c));
    if (has_label(labels, c)) {
      return tl::unexpected(
          fmt::format("'{}' stands twice in '{}': diagonals are not taken", c, text));
    }
    labels += c;
  }
  return labels;
}

std::string implied_result(const std::vector<std::string>& operands) {
  std::string all;
  for (const std::string& labels : operands) all += labels;
  std::string result;
  for (const char label : all) {
    if (std::count(all.begin(), all.end(), label) == 1) result += label;
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// Those of `labels` for which `holds`.
template <class Holds>
std::string labels_where(std::string_view labels, Holds holds) {
  std::string found;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(found), holds);
  return found;
}

}  // namespace

tl::expected<EinsumEquation, std::string> read_equation(std::string_view text,
                                                        std::size_t operands) {
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
  if (equation.operands.size() != operands) {
    return tl::unexpected(
        fmt::format("it names {} operands, and there are {}", equation.operands.size(), operands));
  }
  if (arrow == std::string_view::npos) {
    equation.result = implied_result(equation.operands);
    return equation;
  }
  auto result = read_labels(text.substr(arrow + 2));
  if (!result) return tl::unexpected(result.error());
  for (const char label : *result) {
    const bool known = std::any_of(equation.operands.begin(), equation.operands.end(),
                                   [&](const std::string& of) { return has_label(of, label); });
    if (!known) return tl::unexpected(fmt::format("no operand has '{}' of the result", label));
  }
  equation.result = *std::move(result);
  return equation;
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
