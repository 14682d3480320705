// ONNX files in the tests' own words: protobuf's fields, and what ONNX puts into them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stowage::testing {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7U) bytes.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
inline std::string number_field(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3U) + varint(value);
}
inline std::string text_field(int field, const std::string& bytes) {
  return varint((static_cast<std::uint64_t>(field) << 3U) | 2U) + varint(bytes.size()) + bytes;
}

inline std::string integers_attribute(const std::string& name,
                                      const std::vector<std::int64_t>& values) {
  std::string all = text_field(1, name) + number_field(20, 7);
  for (const std::int64_t value : values) {
    all += number_field(8, static_cast<std::uint64_t>(value));
  }
  return text_field(5, all);
}
inline std::string integer_attribute(const std::string& name, std::int64_t value) {
  return text_field(5, text_field(1, name) + number_field(3, static_cast<std::uint64_t>(value)) +
                           number_field(20, 2));
}

/// A node, as a field of its graph.
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::string& attributes = "") {
  std::string body;
  for (const std::string& input : inputs) body += text_field(1, input);
  for (const std::string& output : outputs) body += text_field(2, output);
  body += text_field(3, op + "_" + outputs[0]) + text_field(4, op) + attributes;
  return text_field(1, body);
}

/// Weights that lie in another file.
inline std::string weights(const std::string& name, const std::vector<std::int64_t>& dims) {
  std::string body;
  for (const std::int64_t extent : dims) {
    body += number_field(1, static_cast<std::uint64_t>(extent));
  }
  return text_field(5, body + number_field(2, 1) + text_field(8, name) + number_field(14, 1));
}
inline std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string body = number_field(1, values.size()) + number_field(2, 7);
  for (const std::int64_t value : values) {
    body += number_field(7, static_cast<std::uint64_t>(value));
  }
  return text_field(5, body + text_field(8, name));
}
inline std::string real(const std::string& name, float value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  return text_field(5, number_field(2, 1) + text_field(9, std::string(bytes, sizeof value)) +
                           text_field(8, name));
}

/// An input (field 11) or output (12) of the graph: "" in `symbols` takes the number.
inline std::string value(int field, const std::string& name, const std::vector<std::string>& shape,
                         int type = 1) {
  std::string dims;
  for (const std::string& extent : shape) {
    const bool is_number = extent.find_first_not_of("0123456789") == std::string::npos;
    dims += text_field(1, is_number ? number_field(1, std::stoull(extent)) : text_field(2, extent));
  }
  const std::string tensor =
      number_field(1, static_cast<std::uint64_t>(type)) + text_field(2, dims);
  return text_field(field, text_field(1, name) + text_field(2, text_field(1, tensor)));
}

/// An entry of a node's metadata.
inline std::string metadata(const std::string& key, const std::string& text) {
  return text_field(9, text_field(1, key) + text_field(2, text));
}

inline std::string onnx_file(const std::string& graph, std::uint64_t opset = 20,
                             const std::string& producer = "test") {
  return number_field(1, 10) + text_field(2, producer) + text_field(7, graph) +
         text_field(8, text_field(1, "") + number_field(2, opset));
}

}  // namespace stowage::testing
