#include "estimator/base/attributes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace stowage {

void Attributes::set(std::string_view name, AttributeValue value) {
  for (std::size_t i = 0; i < entries_->size(); ++i) {
    const auto& [existing, old] = (*entries_)[i];
    if (existing != name) continue;
    if (old != value) entries_.own()[i].second = std::move(value);
    return;
  }
  entries_.own().emplace_back(name, std::move(value));
}

bool Attributes::has(std::string_view name) const {
  return std::any_of(entries_->begin(), entries_->end(),
                     [&](const auto& entry) { return entry.first == name; });
}

const AttributeValue& Attributes::at(std::string_view name) const {
  for (const auto& [existing, value] : *entries_) {
    if (existing == name) return value;
  }
  throw std::logic_error(fmt::format("no attribute '{}'", name));
}

std::int64_t Attributes::integer(std::string_view name) const {
  return std::get<std::int64_t>(at(name));
}
const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return std::get<std::vector<std::int64_t>>(at(name));
}
const Shape& Attributes::dimensions(std::string_view name) const {
  return std::get<Shape>(at(name));
}
double Attributes::real(std::string_view name) const { return std::get<double>(at(name)); }
bool Attributes::boolean(std::string_view name) const { return std::get<bool>(at(name)); }
const std::string& Attributes::text(std::string_view name) const {
  return std::get<std::string>(at(name));
}

namespace {

struct Printer {
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  std::string operator()(const Shape& shape) const { return stowage::to_string(shape); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return value; }
};

}  // namespace

std::string to_string(const AttributeValue& value) { return std::visit(Printer{}, value); }

}  // namespace stowage
