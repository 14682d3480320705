// BitTable: a table of bits, stored in rows of 64-bit words. Internal to estimator/arena.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace stowage {

class BitTable {
 public:
  /// All bits are 0.
  BitTable(std::size_t rows, std::size_t columns)
      : words_((columns + 63) / 64), bits_(words_ * rows) {}

  /// The number of words in a row.
  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] const std::uint64_t* row(std::int32_t row) const {
    return bits_.data() + words_ * static_cast<std::size_t>(row);
  }
  [[nodiscard]] static bool test(const std::uint64_t* row, std::int32_t column) {
    return (row[column >> 6] >> (column & 63)) & 1U;
  }
  [[nodiscard]] bool test(std::int32_t row, std::int32_t column) const {
    return test(this->row(row), column);
  }

  void set(std::int32_t row, std::int32_t column) { word(row, column) |= bit(column); }
  void clear(std::int32_t row, std::int32_t column) { word(row, column) &= ~bit(column); }

  /// Calls visit(column) in ascending order for the bits that are 1 in both rows `a` and `b`, each
  /// of `words` words.
  template <typename Visit>
  static void for_each_common(const std::uint64_t* a, const std::uint64_t* b, std::size_t words,
                              Visit visit) {
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t left = a[w] & b[w]; left != 0; left &= left - 1) {
        visit(static_cast<std::int32_t>(w * 64) + std::countr_zero(left));
      }
    }
  }

 private:
  [[nodiscard]] static std::uint64_t bit(std::int32_t column) {
    return std::uint64_t{1} << (column & 63);
  }
  [[nodiscard]] std::uint64_t& word(std::int32_t row, std::int32_t column) {
    return bits_[words_ * static_cast<std::size_t>(row) + static_cast<std::size_t>(column >> 6)];
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace stowage
