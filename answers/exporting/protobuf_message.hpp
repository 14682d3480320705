// ProtobufMessage: a message in protobuf's wire format, field by field, without a compiled schema.
//
// What is written here are numbers of fields and their wire types; the schema that they are of
// stands where they are written (perfetto_trace.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage {

class ProtobufMessage {
 public:
  /// int32, int64, uint64, bool or an enumerator; a negative one takes ten bytes, as in the format.
  void add(int field, std::int64_t value);
  void add(int field, std::string_view text);
  void add(int field, const ProtobufMessage& message);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void put_varint(std::uint64_t value);
  void put_length_delimited(int field, std::string_view bytes);

  std::string bytes_;
};

}  // namespace stowage
