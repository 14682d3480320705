// Writes the few fields of ONNX that the fuzz targets need, as protobuf's wire format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::fuzz {

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value % 128 + 128));
  out.push_back(static_cast<char>(value));
}

inline std::string field(std::uint64_t number, std::int64_t value) {
  std::string out;
  put_varint(out, number << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
  return out;
}

inline std::string field(std::uint64_t number, std::string_view bytes) {
  std::string out;
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  return out.append(bytes);
}

/// AttributeProto.
inline std::string attribute(std::string_view name, std::int64_t value) {
  return field(5, field(1, name) + field(3, value) + field(20, 2));
}
inline std::string attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t value : values) list += field(8, value);
  return field(5, field(1, name) + list + field(20, 7));
}

/// NodeProto; `attributes` as attribute() writes them.
inline std::string node(std::string_view type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, std::string_view attributes = {},
                        std::string_view domain = {}) {
  std::string out;
  for (const std::string& input : inputs) out += field(1, input);
  for (const std::string& output : outputs) out += field(2, output);
  out += field(4, type);
  out.append(attributes);
  if (!domain.empty()) out += field(7, domain);
  return out;
}

/// TensorProto of int64 values: one axis, or `shape`.
inline std::string constant(std::string_view name, const std::vector<std::int64_t>& values,
                            const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t extent : shape) out += field(1, extent);
  out += field(2, std::int64_t{7}) + field(8, name);
  for (const std::int64_t value : values) out += field(7, value);
  return out;
}

/// ValueInfoProto of floats [batch, 8, 8].
inline std::string value_info(std::string_view name) {
  const std::string shape = field(1, field(2, "batch")) + field(1, field(1, std::int64_t{8})) +
                            field(1, field(1, std::int64_t{8}));
  return field(1, name) + field(2, field(1, field(1, std::int64_t{1}) + field(2, shape)));
}

/// ModelProto with the input "x" and the output "y"; `functions`: FunctionProtos.
inline std::string model(const std::vector<std::string>& nodes,
                         const std::vector<std::string>& constants,
                         const std::vector<std::string>& functions = {}) {
  std::string graph;
  for (const std::string& each : nodes) graph += field(1, each);
  graph += field(2, "g");
  for (const std::string& each : constants) graph += field(5, each);
  graph += field(11, value_info("x")) + field(12, value_info("y"));
  std::string out =
      field(1, std::int64_t{8}) + field(7, graph) + field(8, field(2, std::int64_t{13}));
  for (const std::string& each : functions) out += field(25, each);
  return out;
}

/// Reads an input byte by byte; zeros behind its end.
class Program {
 public:
  Program(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool at_end() const { return at_ >= size_; }
  std::uint8_t byte() { return at_end() ? std::uint8_t{0} : data_[at_++]; }
  /// 0 to `count` - 1.
  std::size_t below(std::size_t count) { return byte() % count; }
  /// A number of a few bits, or one at the end of a type.
  std::int64_t number() {
    constexpr std::int64_t ends[] = {INT64_MAX,
                                     INT64_MIN,
                                     INT64_MIN + 1,
                                     INT64_MAX - 1,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 31,
                                     std::int64_t{1} << 62,
                                     -1,
                                     0,
                                     1,
                                     2,
                                     3,
                                     8,
                                     64,
                                     1000,
                                     100'000};
    const std::uint8_t first = byte();
    return first < 128 ? std::int64_t{first} - 16 : ends[first % 16];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

}  // namespace stowage::fuzz
