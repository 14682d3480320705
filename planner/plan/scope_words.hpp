// The words for the scope of a bound, as plan files and messages spell them.
#pragma once

#include <array>
#include <string_view>

#include "planner/certificate/certificate.hpp"

namespace stowage {

struct ScopeWord {
  std::string_view word;
  bool BoundScope::*flag;
};

inline constexpr std::array<ScopeWord, 6> scope_words{{
    {"computation", &BoundScope::compute_on_gpu},
    {"updates", &BoundScope::updates_on_gpu},
    {"activations", &BoundScope::keep_activations},
    {"unsaved", &BoundScope::keep_unsaved},
    {"weights", &BoundScope::keep_weights},
    {"state", &BoundScope::keep_state},
}};

}  // namespace stowage
