#include "estimator/memory/software_stack.hpp"

#include <fmt/format.h>

#include <charconv>

namespace stowage {

std::optional<CudaVersion> parse_cuda_version(std::string_view text) {
  CudaVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, no_major] = std::from_chars(text.data(), end, version.major);
  if (no_major != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, no_minor] = std::from_chars(dot + 1, end, version.minor);
  const bool sensible = version.major > 0 && version.minor >= 0;
  if (no_minor != std::errc() || rest != end || !sensible) return std::nullopt;
  return version;
}

std::string to_string(const CudaVersion& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

std::string_view to_string(ModuleLoading loading) {
  return loading == ModuleLoading::lazy ? "lazy" : "eager";
}

ModuleLoading usual_loading(const CudaVersion& cuda, Runtime runtime) {
  constexpr CudaVersion lazy_by_default{12, 2};
  const CudaVersion from = runtime == Runtime::pytorch ? first_lazy_cuda : lazy_by_default;
  return cuda < from ? ModuleLoading::eager : ModuleLoading::lazy;
}

}  // namespace stowage
