#include "estimator/recorded/aten_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

namespace stowage {

namespace {

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

const AttributeValue* attribute_of(const KernelNode& node, std::string_view name) {
  const auto& entries = node.attributes.entries();
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return entry.first == name; });
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace

void refuse_call(const KernelNode& node, std::string_view complaint) {
  throw CallRefused(
      {.message = fmt::format("node '{}' calls {}, {}", node.name, kernel_name(node), complaint)});
}

bool is_recorded_call(const KernelNode& node) {
  return attribute_of(node, arguments_attribute) != nullptr;
}

std::string_view schema_name(std::string_view kernel) {
  std::string_view name = kernel.substr(0, kernel.find('.'));
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

AtenCall::AtenCall(const KernelNode& node) : node_(node) {
  const auto text_of = [&](std::string_view name) -> std::string_view {
    const AttributeValue* value = attribute(name);
    if (value == nullptr) refuse(fmt::format("and lacks the attribute '{}'", name));
    const auto* text = std::get_if<std::string>(value);
    if (text == nullptr) refuse(fmt::format("whose attribute '{}' is no text", name));
    return *text;
  };
  read_arguments(text_of(arguments_attribute));
  read_results(text_of(results_attribute));
}

void AtenCall::read_arguments(std::string_view text) {
  std::size_t read = 0;
  const std::vector<std::string_view> parts = parts_of(text);
  for (const std::string_view part : parts) {
    const std::size_t colon = part.find(':');
    Argument argument{.name = std::string(part.substr(0, colon)), .first = read};
    if (colon != std::string_view::npos) {
      const auto count = number_of(part.substr(colon + 1));
      if (!count) refuse(fmt::format("whose attribute 'arguments' is not understood: '{}'", part));
      argument.is_list = true;
      argument.count = static_cast<std::size_t>(*count);
    }
    if (argument.count > node_.reads.size() - read) break;  // told of below
    read += argument.count;
    arguments_.push_back(std::move(argument));
  }
  const bool all = arguments_.size() == parts.size() && read == node_.reads.size();
  if (!all) {
    refuse(fmt::format("whose arguments '{}' are not the {} tensors that it reads", text,
                       node_.reads.size()));
  }
}

// Reads `results`: a position among the schema's results, a range ("0..3"), or the argument that is
// written in place; ":3" after it means a list of three.
void AtenCall::read_results(std::string_view text) {
  const auto add = [&](std::int64_t place, std::int64_t count, std::int64_t step) {
    if (count < 0 || static_cast<std::size_t>(count) > node_.writes.size() - results_.size()) {
      return false;
    }
    for (std::int64_t i = 0; i < count; ++i) results_.push_back(place + i * step);
    return true;
  };
  const auto understood = [&](std::string_view part) {
    constexpr std::int64_t in_place = -1;
    if (const std::size_t dots = part.find(".."); dots != std::string_view::npos) {
      const auto first = number_of(part.substr(0, dots)), last = number_of(part.substr(dots + 2));
      return first && last && *first <= *last && *last < std::int64_t{1} << 40 &&
             add(*first, *last - *first + 1, 1);
    }
    const std::size_t colon = part.find(':');
    const std::optional<std::int64_t> count =
        colon == std::string_view::npos ? 1 : number_of(part.substr(colon + 1));
    return count && add(number_of(part.substr(0, colon)).value_or(in_place), *count, 0);
  };
  const std::vector<std::string_view> parts = parts_of(text);
  if (!std::ranges::all_of(parts, understood) || results_.size() != node_.writes.size()) {
    refuse(fmt::format("whose results '{}' are not the {} tensors that it writes", text,
                       node_.writes.size()));
  }
}

const AttributeValue* AtenCall::attribute(std::string_view name) const {
  return attribute_of(node_, name);
}

std::span<const TensorView> AtenCall::tensors(std::string_view argument) const {
  const auto found = std::ranges::find(arguments_, argument, &Argument::name);
  if (found == arguments_.end()) return {};
  return std::span(node_.reads).subspan(found->first, found->count);
}

const TensorView* AtenCall::find(std::string_view argument) const {
  const auto found = std::ranges::find(arguments_, argument, &Argument::name);
  if (found == arguments_.end()) return nullptr;
  if (found->is_list) refuse(fmt::format("whose '{}' is a list of tensors", argument));
  return &node_.reads[found->first];
}

const TensorView& AtenCall::tensor(std::string_view argument) const {
  const TensorView* found = find(argument);
  if (found == nullptr) refuse(fmt::format("and lacks the tensor '{}'", argument));
  return *found;
}

const TensorView& AtenCall::tensor(std::string_view argument, std::size_t axes) const {
  const TensorView& found = tensor(argument);
  if (found.shape.size() != axes) {
    refuse(fmt::format("whose '{}' is {}, and it takes {} axes", argument, to_string(found.shape),
                       axes));
  }
  return found;
}

const TensorView* AtenCall::find_result(std::int64_t place) const {
  const auto found = std::ranges::find(results_, place);
  if (found == results_.end()) return nullptr;
  return &node_.writes[static_cast<std::size_t>(found - results_.begin())];
}

const TensorView& AtenCall::result(std::int64_t place) const {
  const TensorView* found = find_result(place);
  if (found == nullptr) refuse(fmt::format("and lacks its result {}", place));
  return *found;
}

std::int64_t AtenCall::integer(std::string_view argument) const {
  const std::vector<std::int64_t> all = integers(argument);
  if (all.size() != 1) refuse(fmt::format("whose '{}' is no single number", argument));
  return all.front();
}

std::int64_t AtenCall::integer(std::string_view argument, std::int64_t otherwise) const {
  return attribute(argument) == nullptr ? otherwise : integer(argument);
}

std::vector<std::int64_t> AtenCall::integers(std::string_view argument) const {
  const AttributeValue* value = attribute(argument);
  if (value == nullptr) refuse(fmt::format("and lacks the attribute '{}'", argument));
  if (const auto* one = std::get_if<std::int64_t>(value)) return {*one};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) return *list;
  if (const auto* shape = std::get_if<Shape>(value)) {
    if (std::ranges::all_of(*shape, &Affine::is_constant)) return at_batch(*shape, 0);
  }
  refuse(fmt::format("whose attribute '{}' is no list of whole numbers", argument));
}

double AtenCall::real(std::string_view argument, double otherwise) const {
  const AttributeValue* value = attribute(argument);
  if (value == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  refuse(fmt::format("whose attribute '{}' is no number", argument));
}

bool AtenCall::boolean(std::string_view argument, bool otherwise) const {
  const AttributeValue* value = attribute(argument);
  if (value == nullptr) return otherwise;
  if (const auto* boolean = std::get_if<bool>(value)) return *boolean;
  refuse(fmt::format("whose attribute '{}' is neither true nor false", argument));
}

}  // namespace stowage
