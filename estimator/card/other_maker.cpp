#include "estimator/card/other_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/base/cure.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/card/card_name.hpp"

namespace stowage {

namespace {

struct Family {
  std::string_view pattern;  // of a folded name: its beginning; '#': digits, '$': its end
  std::string_view maker, runtime;
};

constexpr std::string_view amd = "AMD", intel = "Intel", apple = "Apple", google = "Google",
                           amazon = "Amazon", huawei = "Huawei";

constexpr std::array<Family, 64> families = {{
    {"amd", amd, "ROCm"},
    {"radeon", amd, "ROCm"},
    {"instinct", amd, "ROCm"},
    {"firepro", amd, "ROCm"},
    {"ryzen", amd, "ROCm"},
    {"strixhalo", amd, "ROCm"},
    {"vega#", amd, "ROCm"},
    {"rx#", amd, "ROCm"},
    {"mi#", amd, "ROCm"},
    {"r9#", amd, "ROCm"},
    {"#xtx", amd, "ROCm"},
    {"#xt$", amd, "ROCm"},
    {"#gre$", amd, "ROCm"},
    {"w7#", amd, "ROCm"},
    {"w6#", amd, "ROCm"},
    {"gfx#", amd, "ROCm"},
    {"intel", intel, "oneAPI"},
    {"arc", intel, "oneAPI"},
    {"gaudi", intel, "Gaudi's software"},
    {"habana", intel, "Gaudi's software"},
    {"hpu", intel, "Gaudi's software"},
    {"pontevecchio", intel, "oneAPI"},
    {"datacentergpumax", intel, "oneAPI"},
    {"datacentergpuflex", intel, "oneAPI"},
    {"max1550$", intel, "oneAPI"},
    {"max1100$", intel, "oneAPI"},
    {"a770", intel, "oneAPI"},
    {"a750$", intel, "oneAPI"},
    {"a580$", intel, "oneAPI"},
    {"a380$", intel, "oneAPI"},
    {"b580$", intel, "oneAPI"},
    {"b570$", intel, "oneAPI"},
    {"irisxe", intel, "oneAPI"},
    {"xpu$", intel, "oneAPI"},
    {"apple", apple, "Metal"},
    {"mac", apple, "Metal"},
    {"mps$", apple, "Metal"},
    {"m1$", apple, "Metal"},
    {"m2$", apple, "Metal"},
    {"m3$", apple, "Metal"},
    {"m4$", apple, "Metal"},
    {"m5$", apple, "Metal"},
    {"m#pro$", apple, "Metal"},
    {"m#max$", apple, "Metal"},
    {"m#ultra$", apple, "Metal"},
    {"googletpu", google, "XLA"},
    {"tpu", google, "XLA"},
    {"cloudtpu", google, "XLA"},
    {"v5e$", google, "XLA"},
    {"v5p$", google, "XLA"},
    {"v6e$", google, "XLA"},
    {"trillium", google, "XLA"},
    {"ironwood", google, "XLA"},
    {"awstrainium", amazon, "Neuron"},
    {"awsinferentia", amazon, "Neuron"},
    {"trainium", amazon, "Neuron"},
    {"inferentia", amazon, "Neuron"},
    {"trn#", amazon, "Neuron"},
    {"inf#", amazon, "Neuron"},
    {"huawei", huawei, "CANN"},
    {"ascend", huawei, "CANN"},
    {"910b$", huawei, "CANN"},
    {"mtts#", "Moore Threads", "MUSA"},
    {"cambricon", "Cambricon", "Neuware"},
}};

struct KnownMemory {
  std::string_view name;  // what a folded name has in it
  int gigabytes;
};

// The makers' public specifications; a longer name stands before a shorter one that it contains.
constexpr std::array<KnownMemory, 38> memories = {{
    {"7900xtx", 24}, {"7900xt", 20},    {"7900gre", 16}, {"7800xt", 16},  {"7700xt", 12},
    {"7600xt", 16},  {"9070xt", 16},    {"9070", 16},    {"6950xt", 16},  {"6900xt", 16},
    {"6800xt", 16},  {"6700xt", 12},    {"w7900", 48},   {"w7800", 32},   {"w6800", 32},
    {"mi355x", 288}, {"mi350x", 288},   {"mi325x", 256}, {"mi300a", 128}, {"mi300x", 192},
    {"mi250", 128},  {"mi210", 64},     {"mi100", 32},   {"mi50", 16},    {"a770", 16},
    {"a750", 8},     {"a380", 6},       {"b580", 12},    {"b570", 10},    {"gaudi3", 128},
    {"gaudi2", 96},  {"max1550", 128},  {"max1100", 48}, {"v5e", 16},     {"v5p", 95},
    {"v6e", 32},     {"trainium2", 96}, {"910b", 64},
}};

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;
  for (const char c : pattern) {
    if (c == '$') return at == name.size();
    if (c == '#') {
      if (at == name.size() || !is_digit(name[at])) return false;
      while (at < name.size() && is_digit(name[at])) ++at;
    } else if (at == name.size() || name[at++] != c) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<OtherMaker> other_maker_of(std::string_view name) {
  const std::string folded = folded_name(name);
  const auto family = std::ranges::find_if(
      families, [&](const Family& one) { return matches(one.pattern, folded); });
  if (family == families.end()) return std::nullopt;
  OtherMaker maker{.maker = family->maker, .runtime = family->runtime};
  for (const KnownMemory& known : memories) {
    if (folded.find(known.name) == folded.npos) continue;
    maker.gigabytes = known.gigabytes;
    break;
  }
  return maker;
}

Diagnostic no_cuda(const std::string& name, const OtherMaker& maker) {
  const std::string size = fmt::format("{}GiB", maker.gigabytes > 0 ? maker.gigabytes : 16);
  std::string hint = fmt::format("{} {}", in_words(Cure::tensors_alone), size);
  if (maker.gigabytes == 0) hint += fmt::format(", with its own memory in place of {}", size);
  return {.message = fmt::format("'{}' is a processor of {}'s: it runs no CUDA, and what {} takes "
                                 "beside the tensors is not modelled",
                                 name, maker.maker, maker.runtime),
          .hint = std::move(hint)};
}

}  // namespace stowage
