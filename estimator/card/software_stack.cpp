#include "estimator/card/software_stack.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace stowage {

std::optional<ReleaseVersion> parse_version(std::string_view text) {
  ReleaseVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, no_major] = std::from_chars(text.data(), end, version.major);
  if (no_major != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, no_minor] = std::from_chars(dot + 1, end, version.minor);
  const bool sensible = version.major > 0 && version.minor >= 0;
  if (no_minor != std::errc() || rest != end || !sensible) return std::nullopt;
  return version;
}

std::string to_string(const ReleaseVersion& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

std::string_view to_string(ModuleLoading loading) {
  return loading == ModuleLoading::lazy ? "lazy" : "eager";
}

ReleaseVersion usual_cuda(double compute_capability) {
  if (compute_capability >= 7.5) return newest_cuda;
  if (compute_capability >= 5.0) return {12, 9};
  if (compute_capability >= 3.5) return {11, 8};
  return {10, 2};
}

ReleaseVersion usual_pytorch(const ReleaseVersion& cuda) {
  struct Wheel {
    ReleaseVersion cuda, pytorch;
  };
  constexpr std::array wheels{Wheel{{13, 0}, {2, 15}}, Wheel{{12, 8}, {2, 10}},
                              Wheel{{12, 6}, {2, 7}},  Wheel{{12, 4}, {2, 6}},
                              Wheel{{12, 1}, {2, 4}},  Wheel{{11, 7}, {2, 0}}};
  for (const Wheel& wheel : wheels) {
    if (wheel.cuda <= cuda) return wheel.pytorch;
  }
  return {1, 12};
}

ModuleLoading usual_loading(const ReleaseVersion& cuda, Runtime runtime) {
  constexpr ReleaseVersion lazy_by_default{12, 2};
  const ReleaseVersion from =
      traits(runtime).requests_lazy_loading ? first_lazy_cuda : lazy_by_default;
  return cuda < from ? ModuleLoading::eager : ModuleLoading::lazy;
}

}  // namespace stowage
