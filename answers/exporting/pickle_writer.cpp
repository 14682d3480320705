#include "answers/exporting/pickle_writer.hpp"

#include <limits>
#include <utility>

namespace stowage {

namespace {

// Opcodes of Lib/pickletools.py.
constexpr std::string_view protocol_2("\x80\x02", 2);
constexpr char mark = '(', empty_dict = '}', set_items = 'u', empty_list = ']', append_all = 'e',
               tuple = 't', bin_int = 'J', bin_unicode = 'X', memo_put = 'r', memo_get = 'j',
               stop = '.';
constexpr char new_true = '\x88', new_false = '\x89', long_1 = '\x8a';

}  // namespace

PickleWriter::PickleWriter() : bytes_(protocol_2) {}

void PickleWriter::begin_dict() { (bytes_ += empty_dict) += mark; }
void PickleWriter::end_dict() { bytes_ += set_items; }
void PickleWriter::begin_list() { (bytes_ += empty_list) += mark; }
void PickleWriter::end_batch() { (bytes_ += append_all) += mark; }
void PickleWriter::end_list() { bytes_ += append_all; }
void PickleWriter::begin_tuple() { bytes_ += mark; }
void PickleWriter::end_tuple() { bytes_ += tuple; }

void PickleWriter::put_number(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::put(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += bin_int;
    put_number(static_cast<std::uint64_t>(value), 4);
  } else {
    (bytes_ += long_1) += '\x08';
    put_number(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::put_truth(bool value) { bytes_ += value ? new_true : new_false; }

void PickleWriter::put(std::string_view text) {
  const std::string key = 't' + std::string(text);
  if (recall(key)) return;
  bytes_ += bin_unicode;
  put_number(text.size(), 4);
  bytes_ += text;
  remember(key);
}

bool PickleWriter::put_named(const std::string& name) { return recall('v' + name); }
void PickleWriter::give_name(const std::string& name) { remember('v' + name); }

void PickleWriter::remember(const std::string& key) {
  const auto number = static_cast<std::uint32_t>(memo_.size());
  memo_.emplace(key, number);
  bytes_ += memo_put;
  put_number(number, 4);
}

bool PickleWriter::recall(const std::string& key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) return false;
  bytes_ += memo_get;
  put_number(found->second, 4);
  return true;
}

std::string PickleWriter::finish() && {
  bytes_ += stop;
  return std::move(bytes_);
}

}  // namespace stowage
