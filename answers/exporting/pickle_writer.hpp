// PickleWriter: Python's pickle, protocol 2, of dictionaries, lists, texts and whole numbers.
//
// Values are written in the order in which the calls name them; in a dictionary each key is
// followed by its value. A text, and a value that is given a name, is written once and referred to
// later.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace stowage {

class PickleWriter {
 public:
  PickleWriter();

  void begin_dict();
  void end_dict();
  void begin_list();
  /// Ends a batch of the list's items. Python writes a thousand to a batch, and readers in a
  /// browser hold a whole batch as the arguments of one call.
  void end_batch();
  void end_list();
  void begin_tuple();
  void end_tuple();

  void put(std::int64_t value);
  void put_truth(bool value);
  void put(std::string_view text);
  template <typename Value>
  void put(std::string_view key, Value value) {
    put(key);
    put(value);
  }

  /// True: the value that was given this name is put again. False: nothing is put.
  [[nodiscard]] bool put_named(const std::string& name);
  /// Gives the value that was put last a name.
  void give_name(const std::string& name);

  /// The pickle. Precondition: one value, and all that began has ended.
  [[nodiscard]] std::string finish() &&;

 private:
  void put_number(std::uint64_t value, int bytes);
  void remember(const std::string& key);
  [[nodiscard]] bool recall(const std::string& key);

  std::string bytes_;
  std::map<std::string, std::uint32_t> memo_;
};

}  // namespace stowage
