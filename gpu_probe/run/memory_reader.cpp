#include "gpu_probe/run/memory_reader.hpp"

#include <utility>

#include "gpu_probe/run/arena_places.hpp"

namespace stowage {

Result<void> DeviceMemoryReader::before() { return read(use_.before); }

Result<void> DeviceMemoryReader::loaded() {
  if (!is_read_) return {};
  backend_.release();
  return read(use_.loaded);
}

Result<std::optional<DeviceMemoryUse>> DeviceMemoryReader::with_arenas_and_after(const Plan& plan) {
  if (!is_read_) return std::nullopt;
  const ArenaPlaces places = exact_places(plan);
  auto allocated = backend_.allocate(
      {.gpu = places.gpu_arena, .host = places.host_arena, .pinned = places.pinned});
  if (!allocated) return tl::unexpected(std::move(allocated.error()));
  if (auto ok = read(use_.with_arenas); !ok) return tl::unexpected(std::move(ok.error()));
  backend_.release();
  if (auto ok = read(use_.after); !ok) return tl::unexpected(std::move(ok.error()));
  return use_;
}

Result<void> DeviceMemoryReader::read(MemoryReading& reading) {
  const auto memory = backend_.memory();
  if (!memory) return tl::unexpected(memory.error());
  is_read_ = memory->has_value();
  if (is_read_) reading = **memory;
  return {};
}

}  // namespace stowage
