// How a kernel's arguments are written down.
//
//   "x, w, [b] -> y"       tensors in this order; what is in brackets may be missing
//   "x, [w, b] -> y"       w and b stand together or are both missing; brackets do not nest
//   "x... -> y"            one or more
//   "p, g -> p"            a name on both sides is one storage: the kernel writes in place
//   "y, dy -> dx over dy"  dx may lie where dy does: the kernel is right then, too, bit for bit
//   "a, b -> y over a or b"  over either
//   "indices: index, w"    a type of its own; without one, an argument has the kernel's type
//   " -> y"                reads nothing
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stowage {

/// What an argument holds.
enum class ArgumentType : std::uint8_t {
  own,       ///< the kernel's type
  floating,  ///< a floating-point format
  number,    ///< a floating-point format or integers
  constant,  ///< as number, or booleans
  element,   ///< of any type, one by one
  any,       ///< of any type: bytes that are moved, or read whatever they are
  index,     ///< integers
  mask,      ///< boolean or uint8
  bytes,     ///< uint8
};
/// As a signature says it: "index".
[[nodiscard]] constexpr std::string_view to_string(ArgumentType type) {
  constexpr std::array<std::string_view, 9> names{
      "own", "floating", "number", "constant", "element", "any", "index", "mask", "bytes"};
  return names[static_cast<std::size_t>(type)];
}

struct SignatureArgument {
  std::string_view name;
  ArgumentType type = ArgumentType::own;
  bool repeats = false;       ///< one or more of them
  std::uint8_t skips_to = 0;  ///< brackets open before it: the argument after they close; 0: none
  std::uint16_t over = 0;     ///< of a written one, a bit a read argument: it may lie in its place
};

/// One side of a signature.
struct SignatureSide {
  static constexpr std::size_t most = 12;
  std::string_view text;  ///< as written
  std::array<SignatureArgument, most> table = {};
  std::uint8_t count = 0;
  [[nodiscard]] constexpr std::span<const SignatureArgument> all() const {
    return {table.data(), count};
  }
};

struct KernelSignature {
  std::string_view text;
  SignatureSide reads, writes;
};

/// Reads the notation. In a constant expression, what is malformed does not compile.
[[nodiscard]] constexpr KernelSignature signature(std::string_view text);

// The rest is how.

namespace detail {

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

[[nodiscard]] constexpr ArgumentType argument_type(std::string_view word) {
  using enum ArgumentType;
  for (const ArgumentType type : {floating, number, constant, element, any, index, mask, bytes}) {
    if (to_string(type) == word) return type;
  }
  throw "a signature names a type that there is not";
}

// "a or b": what is before brackets and repetitions has the same place in every call.
[[nodiscard]] constexpr std::uint16_t places_of(std::string_view names,
                                                const SignatureSide& reads) {
  constexpr std::string_view other = " or ";
  std::uint16_t places = 0;
  while (!names.empty()) {
    const std::size_t end = names.find(other);
    const std::string_view name = trimmed(names.substr(0, end));
    names = end == std::string_view::npos ? std::string_view() : names.substr(end + other.size());
    std::size_t at = 0;
    while (at < reads.count && reads.table.at(at).name != name) {
      if (reads.table.at(at).repeats || reads.table.at(at).skips_to != 0) {
        throw "a signature writes over an argument whose place differs from call to call";
      }
      ++at;
    }
    if (at == reads.count) throw "a signature writes over an argument that it does not read";
    places |= static_cast<std::uint16_t>(1U << at);
  }
  return places;
}

[[nodiscard]] constexpr SignatureArgument argument(std::string_view text,
                                                   const SignatureSide& reads) {
  SignatureArgument result;
  constexpr std::string_view over = " over ";
  if (const std::size_t at = text.find(over); at != std::string_view::npos) {
    result.over = places_of(text.substr(at + over.size()), reads);
    text = trimmed(text.substr(0, at));
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    result.type = argument_type(trimmed(text.substr(colon + 1)));
    text = trimmed(text.substr(0, colon));
  }
  if (text.ends_with("...")) {
    result.repeats = true;
    text.remove_suffix(3);
  }
  if (text.empty()) throw "a signature has an argument without a name";
  result.name = text;
  return result;
}

// "x, [w, [b]]": cut at commas; brackets are counted off the ends of each part.
[[nodiscard]] constexpr SignatureSide arguments(std::string_view text,
                                                const SignatureSide& reads = {}) {
  SignatureSide result{.text = trimmed(text)};
  std::array<std::uint8_t, SignatureSide::most> opened{};  // by depth: the first argument within
  std::size_t depth = 0;
  for (std::string_view rest = result.text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    std::string_view part = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    for (; part.starts_with('['); part.remove_prefix(1)) opened[depth++] = result.count;
    std::size_t closed = 0;
    for (; part.ends_with(']'); part.remove_suffix(1)) ++closed;
    if (closed > depth) throw "a signature closes brackets that it has not opened";
    result.table.at(result.count++) = argument(part, reads);
    for (; closed > 0; --closed) result.table[opened[--depth]].skips_to = result.count;
  }
  if (depth != 0) throw "a signature leaves brackets open";
  return result;
}

}  // namespace detail

constexpr KernelSignature signature(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) throw "a signature has no arrow";
  const SignatureSide reads = detail::arguments(text.substr(0, arrow));
  return {.text = text, .reads = reads, .writes = detail::arguments(text.substr(arrow + 2), reads)};
}

}  // namespace stowage
