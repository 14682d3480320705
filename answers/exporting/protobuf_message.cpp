#include "answers/exporting/protobuf_message.hpp"

namespace stowage {

namespace {

constexpr std::uint64_t varint_type = 0, length_delimited_type = 2;

std::uint64_t tag(int field, std::uint64_t wire_type) {
  return static_cast<std::uint64_t>(field) << 3 | wire_type;
}

}  // namespace

void ProtobufMessage::put_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void ProtobufMessage::put_length_delimited(int field, std::string_view bytes) {
  put_varint(tag(field, length_delimited_type));
  put_varint(bytes.size());
  bytes_ += bytes;
}

void ProtobufMessage::add(int field, std::int64_t value) {
  put_varint(tag(field, varint_type));
  put_varint(static_cast<std::uint64_t>(value));
}

void ProtobufMessage::add(int field, std::string_view text) { put_length_delimited(field, text); }

void ProtobufMessage::add(int field, const ProtobufMessage& message) {
  put_length_delimited(field, message.bytes_);
}

}  // namespace stowage
