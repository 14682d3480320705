// SoftwareStack: the versions of CUDA and PyTorch that a process runs with, and when it loads
// kernels onto the card.
//
// With lazy loading a kernel is loaded at its first launch (CUDA 11.7 and later; programming guide,
// "Lazy Loading"). With eager loading a library loads all its kernels for the card's architecture
// when it is loaded itself: hundreds of MiB outside any allocator.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/runtime.hpp"

namespace stowage {

struct ReleaseVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ReleaseVersion&) const = default;
};
/// Reads "12.1"; nullopt: the text is not a version.
[[nodiscard]] std::optional<ReleaseVersion> parse_version(std::string_view text);
[[nodiscard]] std::string to_string(const ReleaseVersion& version);

enum class ModuleLoading { lazy, eager };
[[nodiscard]] std::string_view to_string(ModuleLoading loading);

inline constexpr ReleaseVersion first_lazy_cuda{11, 7};
/// The loading without CUDA_MODULE_LOADING: lazy from CUDA 12.2 on (Linux); PyTorch asks for it
/// from 11.7 on.
[[nodiscard]] ModuleLoading usual_loading(const ReleaseVersion& cuda, Runtime runtime);

inline constexpr ReleaseVersion newest_cuda{13, 0};
/// The newest CUDA that supports a compute capability: 13.0 from 7.5 on, 12.9 from 5.0, 11.8 from
/// 3.5, 10.2 below (release notes of 11.0, 12.0 and 13.0).
[[nodiscard]] ReleaseVersion usual_cuda(double compute_capability);
/// The newest PyTorch whose published wheels are built for that CUDA or an earlier one; else 1.12.
[[nodiscard]] ReleaseVersion usual_pytorch(const ReleaseVersion& cuda);

struct SoftwareStack {
  ReleaseVersion cuda = newest_cuda;
  ModuleLoading loading = ModuleLoading::lazy;
  ReleaseVersion pytorch{2, 15};
  bool operator==(const SoftwareStack&) const = default;
};

}  // namespace stowage
