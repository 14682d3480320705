#include "gpu_probe/host/guarded_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stowage {
namespace {

constexpr Bytes line{64};  // the alignment that vector kernels may rely on

}  // namespace

Result<GuardedMemory> GuardedMemory::of(Bytes bytes) {
  const Bytes page(sysconf(_SC_PAGESIZE));
  const Bytes used = round_up(bytes, line), accessible = round_up(used, page);
  const auto size = static_cast<std::size_t>((accessible + 2 * page).count());
  void* const mapping =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return failure(
        fmt::format("no {} of host memory: {}", format_bytes(bytes), std::strerror(errno)));
  }
  GuardedMemory memory;
  memory.mapping_ = static_cast<std::byte*>(mapping);
  memory.mapped_ = size;
  std::byte* const first = memory.mapping_ + page.count();
  if (accessible.count() > 0 &&
      mprotect(first, static_cast<std::size_t>(accessible.count()), PROT_READ | PROT_WRITE) != 0) {
    return failure(
        fmt::format("no {} of host memory: {}", format_bytes(bytes), std::strerror(errno)));
  }
  memory.base_ = first + (accessible - used).count();
  return memory;
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(base_, other.base_);
  return *this;
}

GuardedMemory::~GuardedMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace stowage
