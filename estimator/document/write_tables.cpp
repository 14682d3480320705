#include "estimator/document/write_tables.hpp"

#include "estimator/document/words.hpp"

namespace stowage::step_text {

std::size_t Table::number_of(std::string row) {
  const auto [place, is_new] = number_.try_emplace(std::move(row), rows_.size());
  if (is_new) rows_.push_back(&place->first);
  return place->second;
}

void Table::put_to(Text& text, std::string_view name) const {
  put(text, ",\n{}: [", json_text(name));
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    put(text, "{}\n{}", i == 0 ? "" : ",", *rows_[i]);
  }
  put(text, "]");
}

std::size_t Tables::shape(const Shape& shape) {
  const auto [place, is_new] = shape_number_.try_emplace(shape, 0);
  if (is_new) {
    std::string row = "[";
    for (const Affine& dimension : shape) {
      row += (row.size() > 1 ? "," : "") + written(dimension);
    }
    place->second = shapes_.number_of(row + "]");
  }
  return place->second;
}

// [type, shape, strides or null, offset, is_view], from the end on without what is usual.
std::size_t Tables::layout(const TensorView& view) {
  const bool contiguous = view.strides == contiguous_strides(view.shape);
  std::string row = fmt::format("[{},{}", json_text(to_string(view.type)), shape(view.shape));
  const bool has_offset = view.offset != Affine(0) || view.is_view;
  if (!contiguous) {
    row += fmt::format(",{}", shape(view.strides));
  } else if (has_offset) {
    row += ",null";
  }
  if (has_offset) row += "," + written(view.offset);
  if (view.is_view) row += ",true";
  return layouts_.number_of(row + "]");
}

std::size_t Tables::attributes(const Attributes& attributes) {
  std::string row = "{";
  for (const auto& [name, value] : attributes.entries()) {
    row += fmt::format("{}{}:{}", row.size() > 1 ? "," : "", json_text(name), attribute(value));
  }
  return attributes_.number_of(row + "}");
}

std::size_t Tables::convolution(const ConvolutionCall& call) {
  const auto tensor = [&](const TensorType& type) {
    return fmt::format("[{},{}]", json_text(to_string(type.type)), shape(type.shape));
  };
  const ConvolutionWindow& window = *call.window;
  return convolutions_.number_of(fmt::format(
      R"({{"direction":{},"x":{},"w":{},"y":{},"layout":{},"stride":{},"padding":{},"dilation":{},"groups":{}}})",
      json_text(to_string(call.direction)), tensor(call.x), tensor(call.w), tensor(call.y),
      json_text(to_string(call.layout)), list_of(window.stride), list_of(window.padding),
      list_of(window.dilation), window.groups));
}

void Tables::put_to(Text& text) const {
  shapes_.put_to(text, "shapes");
  layouts_.put_to(text, "layouts");
  attributes_.put_to(text, "attributes");
  convolutions_.put_to(text, "convolutions");
}

std::string Tables::attribute(const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return list_of(*integers);
  }
  if (const auto* dimensions = std::get_if<Shape>(&value)) {
    return fmt::format(R"({{"dimensions":{}}})", shape(*dimensions));
  }
  if (const auto* real = std::get_if<double>(&value)) return written(*real);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  return json_text(std::get<std::string>(value));
}

}  // namespace stowage::step_text
