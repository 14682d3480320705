#include "gpu_probe/cuda/kernel_cache.hpp"

#include <fmt/format.h>

#include <utility>

#include "estimator/base/hash.hpp"
#include "gpu_probe/cache/file_cache.hpp"
#include "gpu_probe/kernels/device_source.hpp"

namespace stowage {
namespace {

constexpr CachedFileNames names{"kernel-", ".cubin"};
constexpr std::string_view first_line = "stowage kernel 1\n";

std::string source_hash() {
  std::string all;
  for (const kernels::DeviceHeader& header : kernels::device_headers()) {
    all += fmt::format("{}\n{}\n", header.name, header.text);
  }
  return hash_text(all);
}

/// Removes the first line from the text and returns it; none: the text has no whole line.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

KernelCache::KernelCache(std::string folder, std::string compiler, std::string architecture)
    : folder_(std::move(folder)),
      circumstances_(fmt::format("NVRTC {} {} {}", compiler, architecture, source_hash())) {}

std::string KernelCache::key(const std::string& function) const {
  return fmt::format("{} {}", circumstances_, function);
}

std::string KernelCache::path(const std::string& function) const {
  return fmt::format("{}/{}{}{}", folder_, names.prefix, hash_text(key(function)), names.suffix);
}

std::optional<CompiledKernels> KernelCache::find(const std::string& function) const {
  const auto bytes = read_cached_file(folder_, path(function), largest_kernel_file);
  if (!bytes || !bytes->starts_with(first_line)) return std::nullopt;
  std::string_view rest = std::string_view(*bytes).substr(first_line.size());
  const auto hash = take_line(rest);
  if (!hash || *hash != hash_text(rest)) return std::nullopt;
  const auto known_as = take_line(rest), name = take_line(rest);
  if (!known_as || !name || *known_as != key(function)) return std::nullopt;
  mark_cached_file_used(path(function));
  return CompiledKernels{std::string(rest), {std::string(*name)}};
}

void KernelCache::add(const std::string& function, const CompiledKernels& kernel) const {
  const std::string body =
      fmt::format("{}\n{}\n{}", key(function), kernel.names.front(), kernel.cubin);
  write_cached_file(folder_, path(function),
                    fmt::format("{}{}\n{}", first_line, hash_text(body), body));
  drop_unused_files(folder_, names, most_kernel_files);
}

}  // namespace stowage
