#include "cli/operator_reference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stowage {

namespace {

// A bar would end a cell.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string integers_text(const AttributeSpec& attribute) {
  if (attribute.length == 0) return "integers";
  std::string text =
      attribute.other_length == 0
          ? fmt::format("{} integer{}", attribute.length, attribute.length == 1 ? "" : "s")
          : fmt::format("{} or {} integers", attribute.length, attribute.other_length);
  if (!attribute.choices.empty()) {
    text += fmt::format(" or {}", fmt::join(attribute.choices, " | "));
  }
  return text;
}

}  // namespace

std::string type_text(const AttributeSpec& attribute) {
  switch (attribute.type) {
    case AttributeType::integer:
      return "integer";
    case AttributeType::integers:
      return integers_text(attribute);
    case AttributeType::dimensions:
      return "dimensions";
    case AttributeType::real:
      return "number";
    case AttributeType::boolean:
      return "true or false";
    case AttributeType::choice:
      return fmt::format("{}", fmt::join(attribute.choices, " | "));
  }
  return "";
}

std::string bounds_text(const AttributeSpec& attribute) {
  if (attribute.minimum && attribute.maximum) {
    return fmt::format("{} to {}", *attribute.minimum, *attribute.maximum);
  }
  if (attribute.minimum) return fmt::format("at least {}", *attribute.minimum);
  if (attribute.maximum) return fmt::format("at most {}", *attribute.maximum);
  return "";
}

std::string default_text(const AttributeSpec& attribute) {
  return attribute.default_value ? to_string(*attribute.default_value) : "required";
}

std::string inputs_text(const OperatorRow& row) {
  if (row.max_inputs < 0) return fmt::format("{} or more", row.min_inputs);
  if (row.max_inputs == row.min_inputs) return fmt::format("{}", row.min_inputs);
  return fmt::format("{} to {}", row.min_inputs, row.max_inputs);
}

std::string autocast_text(const OperatorRow& row) {
  switch (row.autocast) {
    case AutocastClass::as_is:
      return "that of its inputs";
    case AutocastClass::lower:
      return "the lower one";
    case AutocastClass::float32:
      return "fp32";
    case AutocastClass::widest:
      return "the widest of its inputs";
  }
  return "";
}

std::string operator_reference() {
  std::string text;
  for (const OperatorRow& row : operator_catalogue()) {
    text +=
        fmt::format("### {}\n\n{}{}. Inputs: {}. Format under autocast: {}.\n", row.name,
                    row.is_loss ? "A loss: " : "", row.doc, inputs_text(row), autocast_text(row));
    if (!row.attributes.empty()) {
      text += "\n| attribute | takes | default | bounds | meaning |\n|---|---|---|---|---|\n";
    }
    for (const AttributeSpec& attribute : row.attributes) {
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", attribute.name,
                          escaped(type_text(attribute)), escaped(default_text(attribute)),
                          bounds_text(attribute), escaped(attribute.doc));
    }
    text += "\n";
  }
  return text;
}

}  // namespace stowage
