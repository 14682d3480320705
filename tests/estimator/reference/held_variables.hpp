// What PyTorch's side holds longer than our step: variables of Python functions, copies that nobody
// reads. Tables; live_differences.cpp accounts for them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace stowage::reference {

/// While a module runs, a variable of its caller still holds the module's input, though nobody will
/// read it again.
struct HeldOutput {
  std::vector<std::string_view> models;
  std::string_view layer;      ///< whose output is held
  std::string_view through;    ///< the last layer of the module that runs, or kernel call
  std::string_view only = {};  ///< the precision's or variant's beginning, or adapters: else it is
                               ///< saved anyway
};

[[nodiscard]] std::span<const HeldOutput> held_outputs();

/// A copy that transformers or a fake tensor makes and our step does not: of the bytes of
/// `storage`, there from the first kernel call whose name starts with `from` to the last of
/// `through`.
struct MissingCopy {
  std::vector<std::string_view> models;
  std::string_view storage, from, through;
  std::string_view only = {};  ///< the precision
};

[[nodiscard]] std::span<const MissingCopy> missing_copies();

}  // namespace stowage::reference
