#include "estimator/optimizer/other_names.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "estimator/base/name_match.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

struct OtherName {
  std::string_view folded;
  OptimizerMeaning meaning;
};

// transformers 5's OptimizerNames, classes of bitsandbytes, apex and DeepSpeed, and common words,
// each with the row that keeps the same state.
constexpr auto fused = OptimizerImplementation::fused;
constexpr std::array<OtherName, 16> other_names = {{
    {"adamwtorch", {"adamw"}},
    {"adamwhf", {"adamw"}},
    {"adamwtorchfused", {"adamw", fused}},
    {"adamwapexfused", {"adamw", fused}},
    {"adamwfused", {"adamw", fused}},
    {"adamfused", {"adam", fused}},
    {"fusedadam", {"adam", fused}},
    {"fusedadamw", {"adamw", fused}},
    {"adamwbnb8bit", {"adamw8bit"}},
    {"adambnb8bit", {"adam8bit"}},
    {"pagedadamw", {"paged_adamw_32bit"}},
    {"pagedlion", {"paged_lion_32bit"}},
    {"lion32bit", {"lion"}},
    {"sgdmomentum", {"momentum"}},
    {"sgdm", {"momentum"}},
    {"sgdnesterov", {"nesterov"}},
}};

}  // namespace

std::optional<OptimizerMeaning> optimizer_meant(std::string_view name) {
  const std::string folded = folded_name(name.substr(name.rfind('.') + 1));
  for (const std::string_view known : optimizer_names()) {
    if (folded_name(known) == folded) return OptimizerMeaning{known};
  }
  const auto other = std::ranges::find(other_names, folded, &OtherName::folded);
  return other == other_names.end() ? std::nullopt : std::optional(other->meaning);
}

}  // namespace stowage
