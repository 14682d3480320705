#include "planner/solve/packed_placement.hpp"

#include "planner/problem/versions.hpp"

namespace stowage {

PackedPlacement::PackedPlacement(const Placement& placement)
    : operations_(placement.device.size()) {
  for (const auto& gaps : placement.resident) gaps_ += gaps.size();
  std::size_t bits = operations_ + gaps_;
  for (const auto& touches : placement.on_gpu) bits += touches.size();
  bits_.reserve((bits + 63) / 64);
  for (const Device device : placement.device) append(device == Device::gpu);
  for (const auto& gaps : placement.resident) {
    for (const bool resident : gaps) append(resident);
  }
  for (const auto& touches : placement.on_gpu) {
    for (const bool present : touches) append(present);
  }
  for (std::size_t v = 0; v < operations_; ++v) {
    if (placement.engine[v] == 0) continue;
    engines_.emplace_back(static_cast<std::int32_t>(v), placement.engine[v]);
  }
}

void PackedPlacement::append(bool value) {
  if (size_ % 64 == 0) bits_.push_back(0);
  if (value) bits_.back() |= std::uint64_t{1} << (size_ % 64);
  ++size_;
}

Placement PackedPlacement::unpacked(const ResidencyProblem& problem) const {
  Placement placement;
  std::size_t at = 0;
  while (at < operations_) placement.device.push_back(bit(at++) ? Device::gpu : Device::cpu);
  placement.engine.assign(operations_, 0);
  for (const auto& [operation, engine] : engines_) {
    placement.engine[static_cast<std::size_t>(operation)] = engine;
  }
  const auto next = [&](std::size_t count) {
    std::vector<bool> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = bit(at++);
    return values;
  };
  for (const Item& item : problem.items) {
    placement.resident.push_back(next(static_cast<std::size_t>(gap_count(item))));
  }
  for (const Item& item : problem.items) placement.on_gpu.push_back(next(item.touches.size()));
  return placement;
}

}  // namespace stowage
