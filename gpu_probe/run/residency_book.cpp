#include "gpu_probe/run/residency_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_probe/run/node_call.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

const char* side_name(Device device) { return device == Device::gpu ? "GPU" : "host"; }

namespace {

Device other_side(Device device) { return device == Device::gpu ? Device::cpu : Device::gpu; }

Device source_of(Direction direction) {
  return direction == Direction::h2d ? Device::cpu : Device::gpu;
}

}  // namespace

ResidencyBook::ResidencyBook(const Plan& plan) : plan_(plan), graph_(*plan.step.graph) {
  for (const Device side : {Device::cpu, Device::gpu}) {
    sides_[static_cast<std::size_t>(side)].residences = residences_on(plan, side);
  }
  begin_step();
}

void ResidencyBook::begin_step() {
  for (Side& s : sides_) {
    s.copies.assign(graph_.storages.size(), {});
    s.start_offset.assign(graph_.storages.size(), {});
    s.by_offset.clear();
    s.live = {};
  }
  copies_under_way_.clear();
  in_use_.clear();
  newest_.assign(graph_.storages.size(), no_value);
  for (std::size_t i = 0; i < newest_.size(); ++i) {
    if (graph_.storages[i].persistence != Persistence::transient) newest_[i] = 0;
  }
}

const std::string& ResidencyBook::name(StorageId id) const { return graph_.storage(id).name; }
Bytes ResidencyBook::bytes(StorageId id) const { return plan_.bytes(id); }

std::string ResidencyBook::place_text(const Residence& residence) const {
  return fmt::format("'{}' at [{}, {})", name(residence.storage), residence.offset.count(),
                     (residence.offset + bytes(residence.storage)).count());
}

std::string ResidencyBook::transfer_text(std::size_t transfer) const {
  const Transfer& t = plan_.transfers[transfer];
  return fmt::format("the {} of '{}' [{}, {})",
                     direction_of(plan_, t) == Direction::h2d ? "upload" : "download",
                     name(t.storage), t.begin, t.end);
}

void ResidencyBook::violation(std::string text) { violations_.push_back(std::move(text)); }

const ResidencyBook::CopyUnderWay* ResidencyBook::copy_under_way(StorageId storage) const {
  for (const CopyUnderWay& f : copies_under_way_) {
    if (plan_.transfers[f.transfer].storage == storage) return &f;
  }
  return nullptr;
}

std::optional<std::size_t> ResidencyBook::residence(Device device, StorageId storage) const {
  const auto& copy = side(device).copies[storage.index()];
  return copy ? std::optional(copy->residence) : std::nullopt;
}

bool ResidencyBook::newest(Device device, StorageId storage) const {
  const auto& copy = side(device).copies[storage.index()];
  return copy && copy->version != no_value && copy->version == newest_[storage.index()];
}

bool ResidencyBook::was_there_at_start(Device device, StorageId storage) const {
  return side(device).start_offset[storage.index()].has_value();
}

void ResidencyBook::check_overlap(Device device, std::size_t index) {
  const Residence& added = residences(device)[index];
  Side& s = side(device);
  const auto end = added.offset + bytes(added.storage);
  if (end == added.offset) return;
  // Live residences do not overlap each other, so only the two neighbours can overlap the new one.
  const auto next = s.by_offset.lower_bound(added.offset);
  const auto clash = [&](std::size_t other) {
    violation(fmt::format("{} and {} overlap in the {} arena at step {}",
                          place_text(residences(device)[other]), place_text(added),
                          side_name(device), added.steps.begin));
  };
  if (next != s.by_offset.end() && next->first < end) clash(next->second);
  if (next != s.by_offset.begin()) {
    const Residence& before = residences(device)[std::prev(next)->second];
    if (before.offset + bytes(before.storage) > added.offset) clash(std::prev(next)->second);
  }
}

void ResidencyBook::begin_residence(Device device, std::size_t index) {
  const Residence& added = residences(device)[index];
  Side& s = side(device);
  auto& copy = s.copies[added.storage.index()];
  if (copy) {
    violation(fmt::format("'{}' has two places on the {} at step {}", name(added.storage),
                          side_name(device), added.steps.begin));
    return;
  }
  check_overlap(device, index);
  copy = Copy{.residence = index};
  s.by_offset.emplace(added.offset, index);
  s.live += bytes(added.storage);
}

void ResidencyBook::loaded(Device device, StorageId storage) {
  Side& s = side(device);
  s.copies[storage.index()]->version = 0;
  s.start_offset[storage.index()] = residences(device)[s.copies[storage.index()]->residence].offset;
}

void ResidencyBook::end_residence(Device device, std::size_t index, std::int32_t step) {
  const Residence& ended = residences(device)[index];
  Side& s = side(device);
  auto& copy = s.copies[ended.storage.index()];
  if (!copy || copy->residence != index) return;  // it never began, which was reported
  for (const StorageInUse& use : in_use_) {
    if (use.storage != ended.storage || device != Device::cpu) continue;
    violation(fmt::format("the place of '{}' on the host ends at step {} while node '{}' uses it",
                          name(ended.storage), step, graph_.node(use.node).name));
  }
  if (const CopyUnderWay* f = copy_under_way(ended.storage)) {
    violation(fmt::format("the place of '{}' on the {} ends at step {} while {} is under way",
                          name(ended.storage), side_name(device), step,
                          transfer_text(f->transfer)));
  }
  copy.reset();
  const auto at = s.by_offset.find(ended.offset);
  if (at != s.by_offset.end() && at->second == index) s.by_offset.erase(at);
  s.live -= bytes(ended.storage);
}

void ResidencyBook::begin_transfer(std::size_t index) {
  const Transfer& t = plan_.transfers[index];
  const Device source = source_of(direction_of(plan_, t));
  const auto& from = side(source).copies[t.storage.index()];
  const auto& to = side(other_side(source)).copies[t.storage.index()];
  for (const auto& [copy, device] :
       {std::pair(&from, source), std::pair(&to, other_side(source))}) {
    if (!*copy) {
      violation(fmt::format("{} begins where '{}' has no place on the {}", transfer_text(index),
                            name(t.storage), side_name(device)));
      return;
    }
  }
  if (from->version == no_value) {
    violation(fmt::format("{} begins before the {} copy has a value", transfer_text(index),
                          side_name(source)));
  }
  if (const CopyUnderWay* f = copy_under_way(t.storage)) {
    violation(fmt::format("{} begins while {} is under way", transfer_text(index),
                          transfer_text(f->transfer)));
  }
  for (const StorageInUse& use : in_use_) {
    if (use.storage != t.storage || (!use.writes && source == Device::cpu)) continue;
    violation(fmt::format("{} begins while node '{}' {} it on the host", transfer_text(index),
                          graph_.node(use.node).name, use.writes ? "writes" : "reads"));
  }
  copies_under_way_.push_back({index, from->version});
  side(other_side(source)).copies[t.storage.index()]->version = no_value;
}

void ResidencyBook::end_transfer(std::size_t index) {
  const auto at = std::find_if(copies_under_way_.begin(), copies_under_way_.end(),
                               [&](const CopyUnderWay& f) { return f.transfer == index; });
  if (at == copies_under_way_.end()) return;  // it never began, which was reported
  const Transfer& t = plan_.transfers[index];
  auto& to = side(other_side(source_of(direction_of(plan_, t)))).copies[t.storage.index()];
  if (to) to->version = at->version;
  copies_under_way_.erase(at);
}

void ResidencyBook::check_place(const KernelNode& node, NodeId id, StorageId storage,
                                const char* what) {
  const Device device = device_of(plan_, plan_.nodes[id.index()]);
  if (side(device).copies[storage.index()]) return;
  violation(fmt::format("node '{}' {} '{}' at step {}, whose {} copy is not there", node.name, what,
                        name(storage), id.value, side_name(device)));
}

void ResidencyBook::check_read(const KernelNode& node, NodeId id, StorageId storage) {
  const Device device = device_of(plan_, plan_.nodes[id.index()]);
  const auto& copy = side(device).copies[storage.index()];
  check_place(node, id, storage, "reads");
  if (!copy || newest(device, storage)) return;
  violation(
      fmt::format("node '{}' reads '{}' at step {}, whose {} copy {}", node.name, name(storage),
                  id.value, side_name(device),
                  copy->version == no_value ? "has no value yet" : "is not the newest version"));
}

void ResidencyBook::check_workspace(NodeId id) {
  const PlannedNode& node = plan_.nodes[id.index()];
  if (node.workspace == Bytes(0) || device_of(plan_, node) != Device::gpu) return;
  const auto& live = side(Device::gpu).by_offset;
  const Bytes end = node.workspace_offset + node.workspace;
  auto next = live.lower_bound(node.workspace_offset);
  if (next != live.begin()) --next;
  for (; next != live.end() && next->first < end; ++next) {
    const Residence& other = residences(Device::gpu)[next->second];
    if (other.offset + bytes(other.storage) <= node.workspace_offset) continue;
    violation(
        fmt::format("the workspace of '{}' at [{}, {}) and {} overlap in the GPU arena at "
                    "step {}",
                    graph_.node(id).name, node.workspace_offset.count(), end.count(),
                    place_text(other), id.value));
  }
}

void ResidencyBook::check_in_use(NodeId id, StorageId storage, bool writes) {
  const bool on_cpu = device_of(plan_, plan_.nodes[id.index()]) == Device::cpu;
  for (const StorageInUse& use : in_use_) {
    if (use.storage != storage || (!use.writes && !writes)) continue;
    if (on_cpu && use.node < id) continue;  // it runs after that node
    violation(fmt::format("node '{}' {} '{}' at step {} while node '{}' {} it on the CPU",
                          graph_.node(id).name, writes ? "writes" : "reads", name(storage),
                          id.value, graph_.node(use.node).name, use.writes ? "writes" : "reads"));
  }
}

/// For nodes of the CPU: they may run on while other work begins. Nodes of the GPU are over when
/// the book looks at anything else.
void ResidencyBook::mark_in_use(NodeId id) {
  const KernelNode& node = graph_.node(id);
  for (const StorageId storage : storages_read(node)) in_use_.push_back({id, storage, false});
  for (const StorageId storage : storages_written(node)) in_use_.push_back({id, storage, true});
  for (const StorageId storage : node.temporaries) in_use_.push_back({id, storage, true});
}

void ResidencyBook::finish_node(NodeId id) {
  std::erase_if(in_use_, [&](const StorageInUse& use) { return use.node == id; });
}

void ResidencyBook::begin_node(NodeId id) {
  const KernelNode& node = graph_.node(id);
  for (const StorageId storage : storages_read(node)) check_in_use(id, storage, false);
  for (const StorageId storage : storages_written(node)) check_in_use(id, storage, true);
  for (const StorageId storage : storages_read(node)) check_read(node, id, storage);
  for (const StorageId storage : node.temporaries) check_place(node, id, storage, "works in");
  for (const StorageId storage : storages_written(node)) {
    check_place(node, id, storage, "writes");
    if (const CopyUnderWay* f = copy_under_way(storage)) {
      violation(fmt::format("node '{}' writes '{}' at step {} while {} is under way", node.name,
                            name(storage), id.value, transfer_text(f->transfer)));
    }
  }
  check_workspace(id);
}

void ResidencyBook::end_node(NodeId id) {
  const Device device = device_of(plan_, plan_.nodes[id.index()]);
  for (const StorageId storage : storages_written(graph_.node(id))) {
    auto& copy = side(device).copies[storage.index()];
    ++newest_[storage.index()];
    if (copy) copy->version = newest_[storage.index()];
  }
  if (device == Device::cpu) mark_in_use(id);
}

std::vector<StorageId> ResidencyBook::made_stale(Device written_on, NodeId node) const {
  std::vector<StorageId> stale;
  const Side& other = side(other_side(written_on));
  for (const StorageId storage : storages_written(graph_.node(node))) {
    if (other.copies[storage.index()]) stale.push_back(storage);
  }
  return stale;
}

void ResidencyBook::check_end(Device device, StorageId storage) {
  const Side& s = side(device);
  const auto& start = s.start_offset[storage.index()];
  if (!start) return;
  const auto& copy = s.copies[storage.index()];
  if (!copy || residences(device)[copy->residence].offset != *start) {
    violation(fmt::format("'{}' begins the step on the {} at {} and does not end it there",
                          name(storage), side_name(device), start->count()));
  } else if (!newest(device, storage)) {
    violation(fmt::format("'{}' ends the step on the {} without the newest version", name(storage),
                          side_name(device)));
  }
}

void ResidencyBook::end_step() {
  for (std::size_t i = 0; i < newest_.size(); ++i) {
    const StorageId storage = StorageId::of(i);
    if (graph_.storages[i].persistence != Persistence::persistent) continue;
    check_end(Device::gpu, storage);
    check_end(Device::cpu, storage);
    if (newest_[i] > 0 && !newest(Device::gpu, storage) && !newest(Device::cpu, storage)) {
      violation(
          fmt::format("the newest version of '{}' is lost when the step ends", name(storage)));
    }
  }
  for (const CopyUnderWay& f : copies_under_way_) {
    violation(fmt::format("{} is under way when the step ends", transfer_text(f.transfer)));
  }
}

Bytes ResidencyBook::live_on_gpu(NodeId node) const {
  const PlannedNode& planned = plan_.nodes[node.index()];
  const Bytes live = side(Device::gpu).live;
  return device_of(plan_, planned) == Device::gpu ? live + planned.workspace : live;
}

}  // namespace stowage
