// Matching of card names: "rtx3090", "RTX 3090", "NVIDIA GeForce RTX 3090" and rtx-3090.yaml name
// one card.
//
// A file's stem is a list of words ("a100", "sxm4", "40gb"). A request, lower-cased, without
// separators and without the makers' words (NVIDIA, GeForce, Tesla, Quadro, ...), names the card if
// it is those words in any order; words that only tell variants apart (the memory size, the form
// factor, a leading "rtx" or "gtx", an architecture) may be left out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stowage {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "NVIDIA GeForce RTX 3090" -> "rtx3090".
[[nodiscard]] std::string squeeze_card_name(std::string_view request);

/// The stems that a squeezed request names, in the given order. If the request names a stem in
/// full, only that one; else all variants that the request leaves open.
[[nodiscard]] std::vector<std::string> matching_stems(std::string_view squeezed,
                                                      std::span<const std::string> stems);

/// The memory size in a stem ("a100-sxm4-40gb": 40), or 0.
[[nodiscard]] int gigabytes_in_stem(std::string_view stem);

}  // namespace stowage
