// The walk: from boundary to boundary and from node to node, with what each side holds of each
// storage at the time. plan.hpp says what happens at a boundary, and in which order:
//
//   boundary t:  the CPU's nodes until t end, host residences change, downloads of t begin,
//                downloads until t end, GPU residences change, uploads of t begin, uploads until t
//                end, the CPU's nodes of t begin
//   node:        reads need the newest version on the node's side, writes make the next one. On the
//                CPU both count as done when it begins; what it touches is then its own until it
//                ends (running_nodes.hpp)
//
// A copy under way has no value at its destination until it ends, and its storage may not be
// written meanwhile on either side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/running_nodes.hpp"

namespace stowage {

namespace {

constexpr std::int64_t nothing = -1;  // a version: no value yet, or not a whole one

struct Copy {
  const Residence* residence = nullptr;  // null: no place for it
  std::int64_t version = nothing;
  bool at_start = false;  // claimed: was there, valid, when the step started
};

struct RunningCopy {
  const Transfer* transfer = nullptr;  // null: none under way
  const Residence* destination = nullptr;
  std::int64_t version = nothing;  // of the source when it began
};

/// The entries that begin and end at each boundary, in the order of the plan.
template <typename Entry>
struct BoundaryEvents {
  std::vector<std::vector<const Entry*>> begins, ends;
  explicit BoundaryEvents(std::size_t boundaries) : begins(boundaries), ends(boundaries) {}
  void add(const Entry& entry, std::int32_t begin, std::int32_t end) {
    begins[static_cast<std::size_t>(begin)].push_back(&entry);
    ends[static_cast<std::size_t>(end)].push_back(&entry);
  }
};

constexpr std::size_t gpu = static_cast<std::size_t>(Device::gpu);
constexpr std::size_t cpu = static_cast<std::size_t>(Device::cpu);
constexpr std::size_t up = static_cast<std::size_t>(Direction::h2d);
constexpr std::size_t down = static_cast<std::size_t>(Direction::d2h);

std::size_t direction_index(const Plan& plan, const Transfer& transfer) {
  return static_cast<std::size_t>(direction_of(plan, transfer));
}

class PresenceWalk {
 public:
  explicit PresenceWalk(const Plan& plan);
  std::vector<Check> run();

 private:
  void find_unpinned();
  void start();
  void pass_boundary(std::int32_t t);
  void run_node(std::int32_t t);
  void check_held(std::int32_t t, StorageId storage, bool temporary);
  void finish();

  void mark_present_at_start(std::size_t side);
  void change_residences(std::size_t side, std::size_t t);
  void begin_upload(const Transfer& upload);
  void begin_download(const Transfer& download);
  void start_copy(const Transfer& transfer, const Copy& from, Copy& to);
  void finish_copy(const Transfer& transfer);
  void read(std::int32_t t, std::size_t side, StorageId storage);
  void write(std::int32_t t, std::size_t side, StorageId storage);

  [[nodiscard]] Copy& copy(std::size_t side, StorageId storage) {
    return copies_[side][storage.index()];
  }
  [[nodiscard]] std::int64_t newest(StorageId storage) const { return newest_[storage.index()]; }
  [[nodiscard]] static const char* name(std::size_t side) { return side == gpu ? "GPU" : "host"; }
  [[nodiscard]] std::string what(const Transfer& transfer) const;

  const Plan& plan_;
  const StepGraph& graph_;
  const std::int32_t steps_;
  const std::array<std::vector<Residence>, 2> all_;          // by side
  std::array<BoundaryEvents<Residence>, 2> residences_;      // by side
  std::array<BoundaryEvents<Transfer>, 2> transfers_;        // by direction
  std::vector<std::vector<std::int32_t>> issued_, awaited_;  // the CPU's nodes, by boundary
  RunningNodes running_;
  std::array<std::vector<Copy>, 2> copies_;                 // by side, storage
  std::array<std::vector<RunningCopy>, 2> running_copies_;  // by direction, storage
  std::vector<std::int64_t> newest_;                        // by storage
  std::vector<bool> outlives_step_;  // by storage: what one step leaves to the next
  std::int64_t reads_ = 0, writes_ = 0, temporaries_ = 0, kept_ = 0;
  Violations inputs_, outputs_, temporary_, placed_, current_, steady_;
};

PresenceWalk::PresenceWalk(const Plan& plan)
    : plan_(plan),
      graph_(*plan.step.graph),
      steps_(static_cast<std::int32_t>(plan.nodes.size())),
      all_{residences_on(plan, static_cast<Device>(0)),
           residences_on(plan, static_cast<Device>(1))},
      residences_{BoundaryEvents<Residence>(plan.nodes.size() + 1),
                  BoundaryEvents<Residence>(plan.nodes.size() + 1)},
      transfers_{BoundaryEvents<Transfer>(plan.nodes.size() + 1),
                 BoundaryEvents<Transfer>(plan.nodes.size() + 1)},
      issued_(plan.nodes.size() + 1),
      awaited_(plan.nodes.size() + 1),
      running_(plan) {
  for (const std::size_t side : {gpu, cpu}) {
    for (const Residence& r : all_[side]) residences_[side].add(r, r.steps.begin, r.steps.end);
  }
  for (const Transfer& t : plan.transfers) {
    transfers_[direction_index(plan, t)].add(t, t.begin, t.end);
  }
  for (std::int32_t t = 0; t < steps_; ++t) {
    if (device_of(plan, plan.nodes[static_cast<std::size_t>(t)]) == Device::gpu) continue;
    const StepRange window = window_of(plan, NodeId{t});
    issued_[static_cast<std::size_t>(window.begin)].push_back(t);
    awaited_[static_cast<std::size_t>(window.end)].push_back(t);
  }
  for (auto& side : copies_) side.resize(graph_.storages.size());
  for (auto& direction : running_copies_) direction.resize(graph_.storages.size());
  for (const Storage& storage : graph_.storages) {
    newest_.push_back(storage.persistence == Persistence::transient ? nothing : 0);
  }
}

std::vector<Check> PresenceWalk::run() {
  find_unpinned();
  start();
  for (std::int32_t t = 0; t < steps_; ++t) {
    pass_boundary(t);
    if (device_of(plan_, plan_.nodes[static_cast<std::size_t>(t)]) == Device::cpu) continue;
    running_.run(t);
    run_node(t);
  }
  pass_boundary(steps_);
  finish();
  return {verdict("inputs present", inputs_,
                  fmt::format("{} reads by {} nodes find the newest version", reads_, steps_)),
          verdict("outputs placed", outputs_,
                  fmt::format("{} writes by {} nodes find room", writes_, steps_)),
          verdict("temporaries placed", temporary_,
                  fmt::format("{} temporaries find room", temporaries_)),
          verdict("transfers placed", placed_,
                  fmt::format("{} copies lie in residences on both sides", plan_.transfers.size())),
          verdict("copies current", current_,
                  fmt::format("{} copies carry the newest version, unwritten on the way",
                              plan_.transfers.size())),
          running_.check(),
          verdict("steady state", steady_,
                  fmt::format("{} copies that are there at the start are there again at the end",
                              kept_))};
}

// Finds copies that are not from or to pinned memory: only those run beside kernels.
void PresenceWalk::find_unpinned() {
  std::vector<bool> pageable(graph_.storages.size(), false), pinned = pageable;
  for (const Residence& r : residences_in(plan_, MemoryKind::pageable)) {
    pageable[r.storage.index()] = true;
  }
  for (const Residence& r : residences_in(plan_, MemoryKind::pinned)) {
    pinned[r.storage.index()] = true;
  }
  for (const Transfer& transfer : plan_.transfers) {
    if (!pageable[transfer.storage.index()]) continue;
    placed_.note(
        [&] { return fmt::format("{} has its other end in pageable memory", what(transfer)); });
  }
  for (std::size_t i = 0; i < pageable.size(); ++i) {
    if (!pageable[i] || !pinned[i]) continue;
    placed_.note([&] {
      return fmt::format("{} is in pinned and in pageable memory",
                         storage_label(plan_, StorageId::of(i)));
    });
  }
}

/// By storage: whether one step leaves its value to the next: persistent, and not overwritten
/// before it is read.
std::vector<bool> carried_over_storages(const StepGraph& graph) {
  std::vector<bool> read_first(graph.storages.size(), false), written = read_first;
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.reads) {
      if (!written[view.storage.index()]) read_first[view.storage.index()] = true;
    }
    for (const TensorView& view : node.writes) written[view.storage.index()] = true;
  }
  for (std::size_t i = 0; i < read_first.size(); ++i) {
    const Storage& storage = graph.storages[i];
    read_first[i] = storage.persistence == Persistence::persistent &&
                    (read_first[i] || (written[i] && storage.carries_over));
  }
  return read_first;
}

void PresenceWalk::start() {
  outlives_step_ = carried_over_storages(graph_);

  change_residences(gpu, 0);
  change_residences(cpu, 0);
  mark_present_at_start(gpu);
  mark_present_at_start(cpu);
}

// A storage that outlives the step and has a residence from 0 is there at the start, unless a copy
// to it begins at 0. An input is on the host.
void PresenceWalk::mark_present_at_start(std::size_t side) {
  for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
    Copy& held = copies_[side][i];
    const Persistence persistence = graph_.storages[i].persistence;
    if (held.residence == nullptr || persistence == Persistence::transient) continue;
    if (persistence == Persistence::from_host) {
      if (side == cpu) held.version = 0;
      continue;
    }
    if (!outlives_step_[i]) continue;
    const auto& arriving = transfers_[side == gpu ? up : down].begins[0];
    const bool filled = std::any_of(arriving.begin(), arriving.end(), [&](const Transfer* t) {
      return t->storage == StorageId::of(i);
    });
    if (filled) continue;
    held.version = 0;
    held.at_start = true;
  }
}

void PresenceWalk::change_residences(std::size_t side, std::size_t t) {
  if (t < static_cast<std::size_t>(steps_)) {  // what lasts to the end is looked at there
    for (const Residence* r : residences_[side].ends[t]) {
      Copy& held = copy(side, r->storage);
      held.residence = nullptr;
      held.version = nothing;
    }
  }
  for (const Residence* r : residences_[side].begins[t]) copy(side, r->storage).residence = r;
}

void PresenceWalk::pass_boundary(std::int32_t t) {
  const auto at = static_cast<std::size_t>(t);
  for (const std::int32_t node : awaited_[at]) running_.finish(node);
  if (t > 0) change_residences(cpu, at);
  for (const Transfer* d : transfers_[down].begins[at]) begin_download(*d);
  for (const Transfer* d : transfers_[down].ends[at]) finish_copy(*d);
  if (t > 0) change_residences(gpu, at);
  for (const Transfer* u : transfers_[up].begins[at]) begin_upload(*u);
  for (const Transfer* u : transfers_[up].ends[at]) finish_copy(*u);
  for (const std::int32_t node : issued_[at]) {
    running_.issue(node);
    run_node(node);
  }
}

std::string PresenceWalk::what(const Transfer& transfer) const {
  return fmt::format("{} of {} from {} to {}",
                     direction_of(plan_, transfer) == Direction::h2d ? "upload" : "download",
                     storage_label(plan_, transfer.storage), step_label(plan_, transfer.begin),
                     step_label(plan_, transfer.end));
}

void PresenceWalk::begin_upload(const Transfer& upload) {
  const Copy& from = copy(cpu, upload.storage);
  Copy& to = copy(gpu, upload.storage);
  if (to.residence == nullptr || to.residence->steps.begin != upload.begin ||
      upload.end > to.residence->steps.end) {
    placed_.note([&] { return what(upload) + " has no GPU residence that begins with it"; });
  }
  if (from.residence == nullptr || from.residence->steps.end < std::min(upload.end + 1, steps_)) {
    placed_.note([&] { return what(upload) + " has no host residence that outlasts it"; });
  }
  start_copy(upload, from, to);
}

void PresenceWalk::begin_download(const Transfer& download) {
  const Copy& from = copy(gpu, download.storage);
  Copy& to = copy(cpu, download.storage);
  if (from.residence == nullptr || download.end > from.residence->steps.end) {
    placed_.note([&] { return what(download) + " has no GPU residence all the way"; });
  }
  if (to.residence == nullptr || download.end > to.residence->steps.end) {
    placed_.note([&] { return what(download) + " has no host residence all the way"; });
  }
  start_copy(download, from, to);
}

void PresenceWalk::start_copy(const Transfer& transfer, const Copy& from, Copy& to) {
  running_.start_copy(transfer, what(transfer));
  RunningCopy& running =
      running_copies_[direction_index(plan_, transfer)][transfer.storage.index()];
  if (running.transfer != nullptr) {
    placed_.note([&] { return what(transfer) + " begins during " + what(*running.transfer); });
    return;
  }
  if (from.version == nothing || from.version != newest(transfer.storage)) {
    current_.note([&] {
      return what(transfer) + (from.version == nothing ? " begins where its source holds nothing"
                                                       : " begins where its source is stale");
    });
  }
  to.version = nothing;
  running = {&transfer, to.residence, from.version};
}

void PresenceWalk::finish_copy(const Transfer& transfer) {
  RunningCopy& running =
      running_copies_[direction_index(plan_, transfer)][transfer.storage.index()];
  if (running.transfer != &transfer) return;  // it could not start
  Copy& to = copy(direction_of(plan_, transfer) == Direction::h2d ? gpu : cpu, transfer.storage);
  if (to.residence != nullptr && to.residence == running.destination) to.version = running.version;
  running = {};
}

void PresenceWalk::run_node(std::int32_t t) {
  const auto at = static_cast<std::size_t>(t);
  const KernelNode& node = graph_.nodes[at];
  const auto side = static_cast<std::size_t>(device_of(plan_, plan_.nodes[at]));
  for (const TensorView& view : node.reads) read(t, side, view.storage);
  if (side == cpu) {
    for (const TensorView& view : node.reads) check_held(t, view.storage, false);
    for (const TensorView& view : node.writes) check_held(t, view.storage, false);
    for (const StorageId temporary : node.temporaries) check_held(t, temporary, true);
  }
  for (const StorageId temporary : node.temporaries) {
    ++temporaries_;
    if (copy(side, temporary).residence != nullptr) continue;
    temporary_.note([&] {
      return fmt::format("{} has no room on the {} for its temporary {}", step_label(plan_, t),
                         name(side), storage_label(plan_, temporary));
    });
  }
  // All writes of a node to one storage make one version: a kernel's results are there together.
  std::vector<StorageId> written;
  for (const TensorView& view : node.writes) {
    if (std::find(written.begin(), written.end(), view.storage) != written.end()) continue;
    written.push_back(view.storage);
    write(t, side, view.storage);
  }
}

// A missing residence is reported elsewhere.
void PresenceWalk::check_held(std::int32_t t, StorageId storage, bool temporary) {
  const Residence* residence = copy(cpu, storage).residence;
  const std::int32_t end = window_of(plan_, NodeId{t}).end;
  if (residence == nullptr || residence->steps.end >= end) return;
  (temporary ? temporary_ : outputs_).note([&] {
    return fmt::format("{} may run until {}, but the host lets go of {} at {}",
                       step_label(plan_, t), step_label(plan_, end), storage_label(plan_, storage),
                       step_label(plan_, residence->steps.end));
  });
}

void PresenceWalk::read(std::int32_t t, std::size_t side, StorageId storage) {
  ++reads_;
  const Copy& held = copy(side, storage);
  if (held.version != nothing && held.version == newest(storage)) return;
  inputs_.note([&] {
    return fmt::format("{} reads {}, which the {} {}", step_label(plan_, t),
                       storage_label(plan_, storage), name(side),
                       held.residence == nullptr ? "does not hold"
                       : held.version == nothing ? "has room for but no value of"
                                                 : "holds an older version of");
  });
}

void PresenceWalk::write(std::int32_t t, std::size_t side, StorageId storage) {
  ++writes_;
  for (const auto& direction : running_copies_) {
    const Transfer* under_way = direction[storage.index()].transfer;
    if (under_way == nullptr) continue;
    current_.note([&] {
      return fmt::format("{} writes {} during the {}", step_label(plan_, t),
                         storage_label(plan_, storage), what(*under_way));
    });
  }
  Copy& held = copy(side, storage);
  if (held.residence == nullptr) {
    outputs_.note([&] {
      return fmt::format("{} writes {}, for which the {} has no room", step_label(plan_, t),
                         storage_label(plan_, storage), name(side));
    });
  }
  const std::int64_t version = ++newest_[storage.index()];
  if (held.residence != nullptr) held.version = version;
}

void PresenceWalk::finish() {
  for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
    const StorageId storage = StorageId::of(i);
    if (outlives_step_[i] && !copy(gpu, storage).at_start && !copy(cpu, storage).at_start) {
      steady_.note([&] {
        return fmt::format("{} is on neither side when the step starts",
                           storage_label(plan_, storage));
      });
    }
    for (const std::size_t side : {gpu, cpu}) {
      const Copy& held = copy(side, storage);
      if (!held.at_start) continue;
      ++kept_;
      if (held.residence != nullptr && held.version == newest(storage)) continue;
      steady_.note([&] {
        return fmt::format(
            "{} is on the {} when the step starts, but at its end the {} {}",
            storage_label(plan_, storage), name(side), name(side),
            held.residence == nullptr ? "does not hold it" : "has not its newest version");
      });
    }
  }
  for (const std::size_t side : {gpu, cpu}) {
    for (const Residence* first : residences_[side].begins[0]) {
      const Copy& held = copy(side, first->storage);
      if (!held.at_start || held.residence == nullptr || held.residence->offset == first->offset) {
        continue;
      }
      steady_.note([&] {
        return fmt::format("{} begins the step at offset {} of the {} and ends it at {}",
                           storage_label(plan_, first->storage), first->offset.count(), name(side),
                           held.residence->offset.count());
      });
    }
  }
}

}  // namespace

std::vector<Check> check_presence(const Plan& plan) { return PresenceWalk(plan).run(); }

}  // namespace stowage
