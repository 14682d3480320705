#include "cli/report/operator_reference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/catalogue/operator_example.hpp"
#include "estimator/catalogue/operator_kernels.hpp"

namespace stowage {

namespace {

// A bar would end a cell.
std::string escaped_cell(std::string_view text) {
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

// "forward `a`; backward `b`, `c`"
std::string calls_text(const std::vector<OperatorKernel>& calls) {
  std::string text;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += calls[i].time == calls[i - 1].time ? "," : ";";
    if (i == 0 || calls[i].time != calls[i - 1].time) {
      text += fmt::format("{}{}", i == 0 ? "" : " ", to_string(calls[i].time));
    }
    text += fmt::format(" `{}`", to_string(calls[i].kernel));
  }
  return text;
}

// "On the host in float32 (`cast` in any type)."; devices that run none of them are left out.
std::string devices_text(const std::vector<OperatorKernel>& calls) {
  std::string text;
  for (const KernelDevice device : kernel_devices) {
    std::vector<std::pair<std::string, std::vector<std::string>>> types;  // and the kernels
    bool there = false;
    for (const OperatorKernel& call : calls) {
      there = there || !kernel_types(call.kernel, device).empty();
      const std::string in = types_text(call.kernel, device);
      auto at = std::find_if(types.begin(), types.end(),
                             [&](const auto& entry) { return entry.first == in; });
      if (at == types.end()) at = types.insert(types.end(), {in, {}});
      at->second.push_back(fmt::format("`{}`", to_string(call.kernel)));
    }
    if (!there) continue;
    text += fmt::format(" On {}: {}", to_string(device), types.front().first);
    for (std::size_t i = 1; i < types.size(); ++i) {
      text += fmt::format(", {} {}", fmt::join(types[i].second, ", "), types[i].first);
    }
    text += ".";
  }
  if (text.empty())
    text = fmt::format(" On no device: {}.", no_device_reason(calls.front().kernel));
  return text;
}

std::string kernels_text(const OperatorRow& row) {
  const std::vector<OperatorKernel> calls = operator_kernels(row);
  if (calls.empty()) return "Kernels: none.";
  return fmt::format("Kernels: {}.{}", calls_text(calls), devices_text(calls));
}

}  // namespace

std::string types_text(Kernel kernel, KernelDevice device) {
  return types_text(kernel_types(kernel, device));
}

std::string types_text(std::span<const DataType> types) {
  if (types.empty()) return "none";
  if (types.size() == all_data_types.size()) return "any type";
  std::vector<std::string_view> names;
  const bool all_floats = std::ranges::all_of(all_data_types, [&](DataType type) {
    return !is_floating_point(type) || std::ranges::find(types, type) != types.end();
  });
  if (all_floats) names.emplace_back("any float");
  for (const DataType type : types) {
    if (!all_floats || !is_floating_point(type)) names.push_back(to_string(type));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = text.find('\n');
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length == std::string_view::npos ? text.size() : length + 1);
  }
  return lines;
}

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
    case AttributeType::text:
      return "text";
  }
  return "";
}

std::string bounds_text(const AttributeSpec& attribute) {
  if (attribute.minimum && attribute.maximum) {
    if (std::isinf(*attribute.minimum) && std::isinf(*attribute.maximum)) return "or .inf, -.inf";
    return fmt::format("{} to {}", *attribute.minimum, *attribute.maximum);
  }
  if (attribute.minimum && std::isinf(*attribute.minimum)) return "or -.inf";
  if (attribute.maximum && std::isinf(*attribute.maximum)) return "or .inf";
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
                          escaped_cell(type_text(attribute)), escaped_cell(default_text(attribute)),
                          bounds_text(attribute), escaped_cell(attribute.doc));
    }
    text += fmt::format("\n```yaml\n{}```\n{}\n\n", example_lines(row), kernels_text(row));
  }
  return text;
}

}  // namespace stowage
