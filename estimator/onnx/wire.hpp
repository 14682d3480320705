// Reads protobuf's wire format from a file without loading the whole file.
//
//   message: (tag, value)*    tag: varint, field number << 3 | type
//   type 0: varint   1: 8 bytes   2: varint length, then as many bytes   5: 4 bytes
// (https://protobuf.dev/programming-guides/encoding; groups, types 3 and 4, are long out of use and
// refused.) Bytes are read through a buffer, and fields that are not needed are skipped, so that a
// file's weights are never read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Random access to the bytes of a file or a text. Throws BrokenFile if they cannot be read.
class ByteSource {
 public:
  /// Errors: the file cannot be opened.
  [[nodiscard]] static Result<ByteSource> open(const std::string& path, std::int64_t size);
  explicit ByteSource(SourceTextPtr text);
  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Precondition: 0 <= offset < size().
  [[nodiscard]] std::uint8_t byte(std::int64_t offset);
  /// Precondition: the range lies within the source.
  [[nodiscard]] std::string bytes(std::int64_t offset, std::int64_t count);

 private:
  ByteSource(int descriptor, std::int64_t size) : descriptor_(descriptor), size_(size) {}
  void load(std::int64_t offset);

  SourceTextPtr text_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::int64_t window_begin_ = 0;
  std::string window_;
};

/// The file is truncated or inconsistent at the byte `offset`.
class BrokenFile : public std::runtime_error {
 public:
  BrokenFile(std::int64_t offset, const std::string& what)
      : std::runtime_error(what), offset_(offset) {}
  [[nodiscard]] std::int64_t offset() const { return offset_; }

 private:
  std::int64_t offset_;
};

/// One field of a message.
struct WireField {
  int number = 0;
  int type = 0;
  std::uint64_t value = 0;  ///< types 0, 1 and 5: its bits
  std::int64_t begin = 0;   ///< type 2: where its bytes begin; else where the field begins
  std::int64_t end = 0;
};

/// Reads the fields of the message in the bytes [begin, end). Throws BrokenFile.
class WireReader {
 public:
  WireReader(ByteSource& source, std::int64_t begin, std::int64_t end)
      : source_(source), at_(begin), end_(end) {}

  /// Reads the next field. False: the message has ended.
  [[nodiscard]] bool next(WireField& field);
  [[nodiscard]] std::uint64_t varint();
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  /// Reads `count` little-endian bytes.
  [[nodiscard]] std::uint64_t fixed(int count);

 private:
  ByteSource& source_;
  std::int64_t at_;
  std::int64_t end_;
};

/// The text of a field of type 2. Throws BrokenFile: another type, or longer than `most`.
[[nodiscard]] std::string read_text(ByteSource& source, const WireField& field, std::int64_t most);
/// Appends the numbers of a repeated integer field, packed (type 2) or single (type 0), to `into`.
/// Throws BrokenFile if `into` would have more than `most`.
void read_integers(ByteSource& source, const WireField& field, std::size_t most,
                   std::vector<std::int64_t>& into);
/// As above, for floats (types 5 and 2).
void read_floats(ByteSource& source, const WireField& field, std::size_t most,
                 std::vector<double>& into);

}  // namespace stowage
