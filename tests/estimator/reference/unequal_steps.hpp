// Reference files that our step is known not to equal, with how far it is from them.
//
// An entry says what is not modelled. It may not grow: peaks must stay within its share of
// PyTorch's, and an entry whose peaks have all become equal fails, so that it is taken out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage::reference {

struct UnequalStep {
  std::string_view file;
  double share = 0;           ///< of PyTorch's peak, at most
  bool saved_differ = false;  ///< the saved tensors are not equal either
  std::string_view reason;
};

/// null: equal, or accounted for by name (known_differences.hpp).
[[nodiscard]] const UnequalStep* unequal_step(const std::string& file);

[[nodiscard]] bool saved_differ(const std::string& file);

/// Counts comparisons of one file's peaks.
class PeakComparison {
 public:
  explicit PeakComparison(const std::string& file) : known_(unequal_step(file)) {}
  void compare(std::int64_t ours, std::int64_t theirs);  ///< CHECKs
  void finish() const;                                   ///< CHECKs that an entry is needed

 private:
  const UnequalStep* known_;
  int unequal_ = 0;
};

}  // namespace stowage::reference
