// The tables of a step file that is being written: shapes, layouts, attributes and convolutions.
// Nodes refer to their rows by number.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/shape.hpp"
#include "estimator/document/step_text.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage::step_text {

/// A table of distinct rows, given as text, in the order of their first use.
class Table {
 public:
  std::size_t number_of(std::string row);
  void put_to(Text& text, std::string_view name) const;

 private:
  std::unordered_map<std::string, std::size_t> number_;
  std::vector<const std::string*> rows_;  // keys of number_, which stay where they are
};

/// The tables that a document's two graphs share. Each function gives a row's number.
class Tables {
 public:
  std::size_t shape(const Shape& shape);
  std::size_t layout(const TensorView& view);
  std::size_t attributes(const Attributes& attributes);
  std::size_t convolution(const ConvolutionCall& call);
  void put_to(Text& text) const;

 private:
  std::string attribute(const AttributeValue& value);

  Table shapes_, layouts_, attributes_, convolutions_;
  std::unordered_map<Shape, std::size_t, ShapeHash> shape_number_;
};

}  // namespace stowage::step_text
