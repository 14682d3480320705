#include <cmath>

#include "estimator/document/read_graph.hpp"
#include "estimator/document/words.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t most_axes = 32;
constexpr std::size_t most_attributes = 100;  // of one call
constexpr std::int64_t most_view_elements = std::int64_t{1}
                                            << 57;  // of 8 bytes: largest_number bytes

template <typename Read>
auto read_list(const JsonValue& list, std::string_view what, Read read) {
  expect(list, Kind::array, what);
  std::vector<decltype(read(list))> rows;
  rows.reserve(list.size());
  for (auto row = list.begin(); !(row == list.end()); ++row) rows.push_back(read(*row));
  return rows;
}

std::vector<std::int64_t> integers(const JsonValue& list, std::string_view what,
                                   std::int64_t least = -largest_number) {
  return read_list(list, what,
                   [&](const JsonValue& number) { return integer_of(number, what, least); });
}

// `dimensions` may also be strides; their product must stay within 64 bits.
Shape shape_of(const JsonValue& value) {
  const std::string_view what = "a shape";
  expect(value, Kind::array, what);
  if (value.size() > most_axes) {
    refuse(value, fmt::format("a shape has at most {} axes", most_axes));
  }
  Shape shape;
  shape.reserve(value.size());
  for (auto dimension = value.begin(); !(dimension == value.end()); ++dimension) {
    shape.push_back(affine_of(*dimension, "a dimension"));
  }
  return shape;
}

TensorView layout_of(const JsonValue& value, const std::vector<Shape>& shapes) {
  FieldRow row(value, "a layout");
  TensorView view;
  view.type = choice_of(row.next("type"), "a layout's type", all_data_types);
  view.shape = tensor_shape(row.next("shape"), shapes);
  const auto strides = row.next_if_any();
  if (strides && !strides->is(Kind::null)) {
    view.strides = shapes[index_of(*strides, "the number of a layout's strides", shapes.size())];
    if (view.strides.size() != view.shape.size()) {
      refuse(*strides, "a layout has as many strides as its shape has axes");
    }
  } else {
    view.strides = contiguous_strides(view.shape);
  }
  if (const auto offset = row.next_if_any()) view.offset = affine_of(*offset, "a layout's offset");
  if (const auto is_view = row.next_if_any()) {
    view.is_view = boolean_of(*is_view, "whether a layout is a view");
  }
  row.finish();
  return view;
}

AttributeValue attribute_of(const JsonValue& value, const std::vector<Shape>& shapes) {
  switch (value.kind()) {
    case Kind::integer:
      return value.integer();
    case Kind::real:
      return value.real();
    case Kind::boolean:
      return value.boolean();
    case Kind::text:
      return text_of(value, "an attribute");
    case Kind::array:
      return integers(value, "an attribute's number", std::numeric_limits<std::int64_t>::min());
    case Kind::object:
      break;
    case Kind::null:
      refuse(value, "an attribute cannot be null");
  }
  Members members(value, "an attribute");
  if (const auto dimensions = members.find("dimensions")) {
    members.finish();
    return shapes[index_of(*dimensions, "a shape's number", shapes.size())];
  }
  const JsonValue real = members.required("real");
  members.finish();
  const std::string word = text_of(real, "a number without digits");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (word == "inf") return infinity;
  if (word == "-inf") return -infinity;
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  refuse(real, "a number without digits must be 'inf', '-inf' or 'nan'");
}

ConvolutionCall convolution_of(const JsonValue& value, const std::vector<Shape>& shapes) {
  Members members(value, "a convolution");
  const auto tensor = [&](std::string_view name) {
    FieldRow row(members.required(name), "a convolution's tensor");
    TensorType type;
    type.type = choice_of(row.next("type"), "a convolution's type", all_data_types);
    type.shape = tensor_shape(row.next("shape"), shapes);
    row.finish();
    return type;
  };
  ConvolutionCall call;
  call.direction =
      choice_of(members.required("direction"), "a convolution's direction", convolution_directions);
  call.x = tensor("x");
  call.w = tensor("w");
  call.y = tensor("y");
  call.layout = choice_of(members.required("layout"), "a convolution's layout", tensor_layouts);
  ConvolutionWindow window;
  window.stride = integers(members.required("stride"), "a stride", 1);
  window.padding = integers(members.required("padding"), "a padding", 0);
  window.dilation = integers(members.required("dilation"), "a dilation", 1);
  window.groups = integer_of(members.required("groups"), "a convolution's groups", 1);
  members.finish();
  const std::size_t axes = window.stride.size();
  const bool alike = window.padding.size() == axes && window.dilation.size() == axes &&
                     call.x.shape.size() == axes + 2 && call.w.shape.size() == axes + 2 &&
                     call.y.shape.size() == axes + 2;
  if (!alike || axes < 1 || axes > 3) {
    refuse(value,
           "a convolution's window has one to three axes, and its tensors have two more each");
  }
  call.window = Shared<ConvolutionWindow>(std::move(window));
  return call;
}

}  // namespace

const Shape& tensor_shape(const JsonValue& number, const std::vector<Shape>& shapes) {
  const Shape& shape = shapes[index_of(number, "a shape's number", shapes.size())];
  try {
    const Affine count = element_count(shape);
    const std::int64_t one = count.at(1);
    if (std::abs(count.constant) <= most_view_elements &&
        std::abs(count.slope) <= most_view_elements && one <= most_view_elements) {
      return shape;
    }
    refuse(number, fmt::format("a tensor of shape {} has too many elements", to_string(shape)));
  } catch (const ArithmeticOverflow&) {
    refuse(number, fmt::format("a tensor of shape {} has too many elements", to_string(shape)));
  } catch (const NotAffine&) {
    refuse(number, fmt::format("the elements of a tensor of shape {} grow faster than the batch",
                               to_string(shape)));
  }
}

std::size_t index_of(const JsonValue& value, std::string_view what, std::size_t count) {
  const bool in_range = value.is(Kind::integer) && value.integer() >= 0 &&
                        value.integer() < static_cast<std::int64_t>(count);
  if (in_range) return static_cast<std::size_t>(value.integer());
  refuse(value, fmt::format("{} must be below {}, not {}", what, count, value.describe()));
}

std::vector<Origin> read_origins(const JsonValue& list) {
  return read_list(list, "'origins'", [](const JsonValue& value) {
    FieldRow row(value, "an origin");
    Origin origin{.layer = text_of(row.next("layer"), "an origin's layer")};
    if (const auto place = row.next_if_any()) origin.place = text_of(*place, "an origin's place");
    row.finish();
    return origin;
  });
}

std::vector<Shape> read_shapes(const JsonValue& list) {
  return read_list(list, "'shapes'", shape_of);
}

std::vector<TensorView> read_layouts(const JsonValue& list, const std::vector<Shape>& shapes) {
  return read_list(list, "'layouts'",
                   [&](const JsonValue& value) { return layout_of(value, shapes); });
}

std::vector<Attributes> read_attributes(const JsonValue& list, const std::vector<Shape>& shapes) {
  return read_list(list, "'attributes'", [&](const JsonValue& value) {
    expect(value, Kind::object, "a row of 'attributes'");
    if (value.size() > most_attributes) {
      refuse(value, fmt::format("a row of 'attributes' has {} members; {} at most are read",
                                value.size(), most_attributes));
    }
    Attributes attributes;
    for (auto member = value.begin(); !(member == value.end()); ++member) {
      const std::string name = name_of(*member, "an attribute's name");
      ++member;
      attributes.set(name, attribute_of(*member, shapes));
    }
    return attributes;
  });
}

std::vector<ConvolutionCall> read_convolutions(const JsonValue& list,
                                               const std::vector<Shape>& shapes) {
  return read_list(list, "'convolutions'",
                   [&](const JsonValue& value) { return convolution_of(value, shapes); });
}

}  // namespace stowage
