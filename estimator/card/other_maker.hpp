// OtherMaker: processors that run no CUDA, by the names that people type for them.
//
// They are not modelled: what their makers' runtimes take beside the tensors is another matter. The
// message about one of them says whose it is and how the tensors alone are sized.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct OtherMaker {
  std::string_view maker;    ///< "AMD"
  std::string_view runtime;  ///< "ROCm"
  int gigabytes = 0;         ///< the named card's memory; 0: not known here
};

/// Whose processor `name` is, however it is written; nullopt: of none of these makers.
[[nodiscard]] std::optional<OtherMaker> other_maker_of(std::string_view name);

/// The refusal of `name`, with what can be asked instead.
[[nodiscard]] Diagnostic no_cuda(const std::string& name, const OtherMaker& maker);

}  // namespace stowage
