// The arena part of PlanExecution: it writes and reads values, poisons places, and puts and checks
// canaries, all within the bounds of the two arenas.
#include <fmt/format.h>

#include <algorithm>

#include "gpu_probe/run/plan_execution.hpp"

namespace stowage {
namespace {

constexpr std::byte poison{0xFF};
constexpr std::byte canary{0xA5};

}  // namespace

/// Called before the host's arena is used from here: work that has ended in the plan may still be
/// running.
void PlanExecution::wait_for_host_arena() {
  if (ended_.empty()) return;
  value_or_stop(backend_.host_waits_for(ended_), "waiting for what has ended");
  ended_.clear();
}

void PlanExecution::write(Device side, std::byte* to, const std::byte* from, Bytes size,
                          StorageId id) {
  if (side == Device::cpu) {
    wait_for_host_arena();
    std::copy(from, from + size.count(), to);
  } else {
    value_or_stop(backend_.write_gpu(to, from, size),
                  fmt::format("writing '{}' to the GPU", name(id)));
  }
}

void PlanExecution::read(Device side, std::byte* to, const std::byte* from, Bytes size,
                         StorageId id) {
  if (side == Device::cpu) {
    wait_for_host_arena();
    std::copy(from, from + size.count(), to);
  } else {
    value_or_stop(backend_.read_gpu(to, from, size),
                  fmt::format("reading '{}' from the GPU", name(id)));
  }
}

void PlanExecution::fill(Device side, std::byte* to, std::byte value, Bytes size,
                         const std::string& what) {
  if (side == Device::cpu) {
    wait_for_host_arena();
    std::fill(to, to + size.count(), value);
  } else {
    value_or_stop(backend_.fill_gpu(to, value, size), fmt::format("filling {} on the GPU", what));
  }
}

void PlanExecution::poison_place(Device side, std::byte* to, StorageId id) {
  if (options_.clean) return;
  fill(side, to, poison, bytes(id), fmt::format("the place of '{}'", name(id)));
}

void PlanExecution::poison_arenas() {
  fill(Device::gpu, base(Device::gpu), poison, places_.gpu_arena, "the arena");
  fill(Device::cpu, base(Device::cpu), poison, places_.host_arena, "the arena");
}

void PlanExecution::touched(Device side, const std::byte* begin, Bytes size) {
  Bytes& mark = side == Device::gpu ? execution_.gpu_high_water : execution_.host_high_water;
  mark = std::max(mark, Bytes(begin - base(side)) + size);
}

std::byte* PlanExecution::address(Device side, StorageId id, const std::string& who) {
  const auto residence = book_.residence(side, id);
  if (!residence) {
    // Without an address the execution cannot go on, whatever the options say.
    if (execution_.violations.empty()) {
      execution_.violations.push_back(
          fmt::format("{} has no address for '{}'", who, graph_.storage(id).name));
    }
    throw Stop{};
  }
  std::byte* const data = place(side, *residence);
  touched(side, data, bytes(id));
  return data;
}

/// Stops unless every place lies in its arena: a place outside of it has no address.
void PlanExecution::check_bounds() {
  const auto check = [&](const std::string& what, Bytes offset, Bytes size, Bytes arena) {
    if (offset >= Bytes(0) && offset + size <= arena) return;
    execution_.violations.push_back(fmt::format("{} at [{}, {}) is not within the arena of {}",
                                                what, offset.count(), (offset + size).count(),
                                                arena.count()));
    throw Stop{};
  };
  for (std::size_t i = 0; i < places_.gpu.size(); ++i) {
    const StorageId id = book_.residences(Device::gpu)[i].storage;
    check(fmt::format("'{}'", graph_.storage(id).name), places_.gpu[i], bytes(id),
          places_.gpu_arena);
  }
  for (std::size_t i = 0; i < places_.host.size(); ++i) {
    const StorageId id = book_.residences(Device::cpu)[i].storage;
    check(fmt::format("'{}' on the host", graph_.storage(id).name), places_.host[i], bytes(id),
          places_.host_arena);
  }
  for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
    if (plan_.nodes[i].workspace == Bytes(0)) continue;
    check(fmt::format("the workspace of '{}'", graph_.nodes[i].name), places_.workspace[i],
          plan_.nodes[i].workspace, places_.gpu_arena);
  }
}

void PlanExecution::put_canaries(Device side, std::byte* data, StorageId id) {
  const std::string what = fmt::format("the canaries of '{}'", name(id));
  fill(side, data - places_.canary.count(), canary, places_.canary, what);
  fill(side, data + bytes(id).count(), canary, places_.canary, what);
}

void PlanExecution::check_canaries(const std::string& when) {
  std::vector<std::byte> found(static_cast<std::size_t>(places_.canary.count()));
  const auto check = [&](Device side, StorageId storage, std::size_t index) {
    std::byte* const data = place(side, index);
    for (std::byte* const at : {data - places_.canary.count(), data + bytes(storage).count()}) {
      read(side, found.data(), at, places_.canary, storage);
      if (std::all_of(found.begin(), found.end(), [](std::byte b) { return b == canary; })) {
        continue;
      }
      execution_.overruns.push_back(fmt::format(
          "bytes {} '{}' on the {} are spoilt after {}", at < data ? "before" : "behind",
          graph_.storage(storage).name, side_name(side), when));
      throw Stop{};
    }
  };
  for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
    const StorageId storage = StorageId::of(i);
    for (const Device side : {Device::gpu, Device::cpu}) {
      if (const auto index = book_.residence(side, storage)) check(side, storage, *index);
    }
  }
}

}  // namespace stowage
