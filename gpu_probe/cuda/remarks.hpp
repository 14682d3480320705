// Remarks: sentences for the user about what ran otherwise than planned.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stowage {

class Remarks {
 public:
  /// Keeps each text once.
  void add(std::string text) {
    if (std::ranges::find(all_, text) == all_.end()) all_.push_back(std::move(text));
  }
  /// In the order in which they were first added.
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

}  // namespace stowage
