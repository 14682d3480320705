#include "estimator/catalogue/axis_attribute.hpp"

#include <fmt/format.h>

#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

tl::expected<std::size_t, InferenceError> axis_attribute(const Attributes& attributes,
                                                         const Shape& shape) {
  const std::int64_t written = attributes.integer("axis");
  if (const auto axis = resolve_axis(written, shape.size())) return *axis;
  return refuse(fmt::format("axis {} is outside its input's shape {}", written, to_string(shape)),
                "axis", 0);
}

Attributes axis_from_zero(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(
                             *axis_attribute(lowering.attributes(), lowering.input().shape)));
  return attributes;
}

AttributeSpec axis_spec(std::optional<std::int64_t> value, std::string_view doc) {
  AttributeSpec spec{.name = "axis", .type = AttributeType::integer, .doc = doc};
  if (value) spec.default_value = *value;
  return spec;
}

}  // namespace stowage
