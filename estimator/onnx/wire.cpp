#include "estimator/onnx/wire.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace stowage {

namespace {

constexpr std::size_t window_length = std::size_t{64} << 10;
constexpr int varint_type = 0;
constexpr int eight_byte_type = 1;
constexpr int length_type = 2;
constexpr int four_byte_type = 5;
constexpr int bits_of_a_byte = 8;

}  // namespace

ByteSource::ByteSource(SourceTextPtr text)
    : text_(std::move(text)), size_(static_cast<std::int64_t>(text_->text.size())) {}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : text_(std::move(other.text_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      window_begin_(other.window_begin_),
      window_(std::move(other.window_)) {}

ByteSource::~ByteSource() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<ByteSource> ByteSource::open(const std::string& path, std::int64_t size) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return failure(fmt::format("cannot open '{}': {}", path, strerror(errno)));
  ByteSource source(descriptor, size);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return failure(fmt::format("'{}' is not a regular file", path));
  }
  return source;
}

void ByteSource::load(std::int64_t offset) {
  window_.resize(window_length);
  std::size_t have = 0;
  while (have < window_.size()) {
    const ssize_t count = pread(descriptor_, window_.data() + have, window_.size() - have,
                                offset + static_cast<std::int64_t>(have));
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw BrokenFile(offset, fmt::format("it cannot be read: {}", strerror(errno)));
    have += static_cast<std::size_t>(count);
  }
  window_.resize(have);
  window_begin_ = offset;
  if (window_.empty()) throw BrokenFile(offset, "the file has become shorter");
}

std::uint8_t ByteSource::byte(std::int64_t offset) {
  if (text_) return static_cast<std::uint8_t>(text_->text[static_cast<std::size_t>(offset)]);
  const std::int64_t at = offset - window_begin_;
  if (at < 0 || at >= static_cast<std::int64_t>(window_.size())) {
    load(offset);
    return static_cast<std::uint8_t>(window_[0]);
  }
  return static_cast<std::uint8_t>(window_[static_cast<std::size_t>(at)]);
}

std::string ByteSource::bytes(std::int64_t offset, std::int64_t count) {
  if (text_) {
    return text_->text.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  }
  std::string all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) all.push_back(static_cast<char>(byte(offset + i)));
  return all;
}

std::uint64_t WireReader::varint() {
  constexpr unsigned payload_bits = 7;
  constexpr unsigned payload = 0x7f;
  constexpr unsigned longest_shift = 63;
  std::uint64_t value = 0;
  const std::int64_t begin = at_;
  for (unsigned shift = 0; shift <= longest_shift; shift += payload_bits) {
    if (at_ >= end_) throw BrokenFile(begin, "a number is cut off");
    const std::uint8_t byte = source_.byte(at_++);
    value |= static_cast<std::uint64_t>(byte & payload) << shift;
    if (byte <= payload) return value;
  }
  throw BrokenFile(begin, "a number has more than 64 bits");
}

std::uint64_t WireReader::fixed(int count) {
  if (end_ - at_ < count) throw BrokenFile(at_, "a number is cut off");
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= static_cast<std::uint64_t>(source_.byte(at_++)) << (bits_of_a_byte * i);
  }
  return value;
}

bool WireReader::next(WireField& field) {
  if (at_ >= end_) return false;
  constexpr unsigned type_bits = 3;
  constexpr unsigned type_mask = 7;
  constexpr std::uint64_t largest_number = (1U << 29U) - 1;
  const std::int64_t begin = at_;
  const std::uint64_t tag = varint();
  const std::uint64_t number = tag >> type_bits;
  field = {.number = static_cast<int>(std::min(number, largest_number)),
           .type = static_cast<int>(tag & type_mask),
           .begin = begin};
  if (number == 0 || number > largest_number) {
    throw BrokenFile(begin, fmt::format("{} is no field's number", number));
  }
  switch (field.type) {
    case varint_type:
      field.value = varint();
      break;
    case eight_byte_type:
      field.value = fixed(8);
      break;
    case four_byte_type:
      field.value = fixed(4);
      break;
    case length_type: {
      const std::uint64_t length = varint();
      if (length > static_cast<std::uint64_t>(end_ - at_)) {
        throw BrokenFile(begin, fmt::format("field {} has {} bytes, and {} are left", number,
                                            length, end_ - at_));
      }
      field.begin = at_;
      at_ += static_cast<std::int64_t>(length);
      break;
    }
    default:
      throw BrokenFile(begin, fmt::format("there is no wire type {}", field.type));
  }
  field.end = at_;
  return true;
}

std::string read_text(ByteSource& source, const WireField& field, std::int64_t most) {
  if (field.type != length_type) {
    throw BrokenFile(field.begin, fmt::format("field {} is not a text", field.number));
  }
  if (field.end - field.begin > most) {
    throw BrokenFile(field.begin, fmt::format("a text has more than {} bytes", most));
  }
  return source.bytes(field.begin, field.end - field.begin);
}

namespace {

void check_count(std::int64_t offset, std::size_t count, std::size_t most) {
  if (count < most) return;
  throw BrokenFile(offset, fmt::format("a list has more than {} numbers", most));
}

}  // namespace

void read_integers(ByteSource& source, const WireField& field, std::size_t most,
                   std::vector<std::int64_t>& into) {
  if (field.type != length_type) {
    check_count(field.begin, into.size(), most);
    into.push_back(static_cast<std::int64_t>(field.value));
    return;
  }
  WireReader reader(source, field.begin, field.end);
  while (!reader.at_end()) {
    check_count(field.begin, into.size(), most);
    into.push_back(static_cast<std::int64_t>(reader.varint()));
  }
}

void read_floats(ByteSource& source, const WireField& field, std::size_t most,
                 std::vector<double>& into) {
  const auto add = [&](std::uint64_t bits) {
    check_count(field.begin, into.size(), most);
    into.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  };
  if (field.type != length_type) return add(field.value);
  WireReader reader(source, field.begin, field.end);
  while (!reader.at_end()) add(reader.fixed(4));
}

}  // namespace stowage
