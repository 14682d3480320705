#include "gpu_probe/run/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <set>
#include <type_traits>

#include "gpu_probe/run/boundaries.hpp"
#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/residency_book.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

constexpr std::byte poison{0xFF};
constexpr std::byte canary{0xA5};

class Executor {
 public:
  Executor(const Plan& plan, Backend& backend, const ExecutionOptions& options)
      : plan_(plan),
        graph_(*plan.step.graph),
        backend_(backend),
        options_(options),
        places_(options.padded ? padded_places(plan) : exact_places(plan)),
        boundaries_(boundaries_of(plan)),
        initial_(initial_values(graph_, plan.step.batch)),
        results_(results_of(graph_)),
        book_(plan),
        tickets_(plan.transfers.size()),
        node_tickets_(plan.nodes.size()) {}

  Result<Execution> run();

 private:
  struct Stop {};  // thrown at a violation or a failure, caught by run()

  void prepare();
  void run_step();
  void begin_next_step();
  void check_bounds();
  void at_boundary(std::int32_t step);
  void run_node(NodeId id);
  void await_node(NodeId id);
  void host_waits();
  void begin_residence(Device side, std::size_t index);
  void end_residence(Device side, std::size_t index, std::int32_t step);
  void begin_transfer(std::size_t index);
  void end_transfers(const std::vector<std::size_t>& indices);
  void capture(std::int32_t after);
  [[nodiscard]] std::optional<Device> side_of_result(StorageId id, bool at_end) const;
  void check_canaries(const std::string& when);
  [[nodiscard]] bool there_at_start(Device side, const Residence& residence) const;

  [[nodiscard]] Bytes bytes(StorageId id) const { return plan_.bytes(id); }
  [[nodiscard]] const std::string& name(StorageId id) const { return graph_.storage(id).name; }
  [[nodiscard]] std::byte* base(Device side) {
    return side == Device::gpu ? backend_.gpu_base() : backend_.host_base();
  }
  [[nodiscard]] std::byte* place(Device side, std::size_t index) {
    const auto& offsets = side == Device::gpu ? places_.gpu : places_.host;
    return base(side) + offsets[index].count();
  }
  [[nodiscard]] std::byte* address(Device side, StorageId id, const std::string& who);
  void touched(Device side, const std::byte* begin, Bytes size);
  void write(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id);
  void read(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id);
  void fill(Device side, std::byte* to, std::byte value, Bytes size, const std::string& what);
  void poison_place(Device side, std::byte* to, StorageId id);
  void violation(std::string text);
  void follow_book();
  void collect_times();

  /// What the backend gives; an error of its ends the execution.
  template <typename T>
  T need(Result<T> result, const std::string& doing) {
    if (!result) {
      const Diagnostic& why = result.error().front();
      failure_ = failure(fmt::format("{}: {}", doing, why.message), why.hint).value();
      throw Stop{};
    }
    if constexpr (!std::is_void_v<T>) return *std::move(result);
  }

  const Plan& plan_;
  const StepGraph& graph_;
  Backend& backend_;
  const ExecutionOptions& options_;
  ArenaPlaces places_;
  std::vector<Boundary> boundaries_;
  std::vector<std::vector<std::byte>> initial_;
  std::vector<ResultPlace> results_;
  std::vector<bool> uploaded_at_start_, downloaded_at_start_;  // by storage, at boundary 0
  std::int64_t number_ = 1;                                    // of the step
  ResidencyBook book_;
  std::size_t book_read_ = 0;         // violations of the book that execution_ has
  std::vector<Ticket> tickets_;       // by transfer
  std::vector<Ticket> node_tickets_;  // by NodeId
  std::vector<Ticket> compute_;       // of the last node on the GPU's lane; at most one
  std::vector<Ticket> awaited_node_;  // the last of the CPU's that has ended; at most one
  std::array<std::vector<Ticket>, 2> last_copies_;  // by Direction: the last that has ended
  std::vector<Ticket> ended_;  // copies and the CPU's nodes, since the host waited for any
  Diagnostics failure_;        // of the backend; none: it did all that it was asked
  Execution execution_;
};

void Executor::violation(std::string text) {
  execution_.violations.push_back(std::move(text));
  if (options_.stop_at_violation) throw Stop{};
}

void Executor::follow_book() {
  const auto& said = book_.violations();
  while (book_read_ < said.size()) violation(said[book_read_++]);
}

/// Before the host's arena is used from here: what has ended in the plan may still be under way.
void Executor::host_waits() {
  if (ended_.empty()) return;
  need(backend_.host_waits_for(ended_), "waiting for what has ended");
  ended_.clear();
}

void Executor::write(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id) {
  if (side == Device::cpu) {
    host_waits();
    std::copy(from, from + size.count(), to);
  } else {
    need(backend_.write_gpu(to, from, size), fmt::format("writing '{}' to the GPU", name(id)));
  }
}

void Executor::read(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id) {
  if (side == Device::cpu) {
    host_waits();
    std::copy(from, from + size.count(), to);
  } else {
    need(backend_.read_gpu(to, from, size), fmt::format("reading '{}' from the GPU", name(id)));
  }
}

void Executor::fill(Device side, std::byte* to, std::byte value, Bytes size,
                    const std::string& what) {
  if (side == Device::cpu) {
    host_waits();
    std::fill(to, to + size.count(), value);
  } else {
    need(backend_.fill_gpu(to, value, size), fmt::format("filling {} on the GPU", what));
  }
}

void Executor::poison_place(Device side, std::byte* to, StorageId id) {
  if (options_.clean) return;
  fill(side, to, poison, bytes(id), fmt::format("the place of '{}'", name(id)));
}

void Executor::touched(Device side, const std::byte* begin, Bytes size) {
  Bytes& mark = side == Device::gpu ? execution_.gpu_high_water : execution_.host_high_water;
  mark = std::max(mark, Bytes(begin - base(side)) + size);
}

std::byte* Executor::address(Device side, StorageId id, const std::string& who) {
  const auto residence = book_.residence(side, id);
  if (!residence) {
    // Nothing to go on with, whatever the options: there is no address.
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

/// Every place lies in its arena; else it has no address.
void Executor::check_bounds() {
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

void Executor::prepare() {
  uploaded_at_start_.resize(graph_.storages.size());
  downloaded_at_start_.resize(graph_.storages.size());
  for (const Transfer& t : plan_.transfers) {
    if (t.begin != 0) continue;
    const bool upload = direction_of(plan_, t) == Direction::h2d;
    (upload ? uploaded_at_start_ : downloaded_at_start_)[t.storage.index()] = true;
  }
  fill(Device::gpu, base(Device::gpu), poison, places_.gpu_arena, "the arena");
  fill(Device::cpu, base(Device::cpu), poison, places_.host_arena, "the arena");
}

bool Executor::there_at_start(Device side, const Residence& residence) const {
  const Storage& storage = graph_.storage(residence.storage);
  if (residence.steps.begin != 0 || storage.persistence == Persistence::transient) return false;
  if (storage.persistence == Persistence::from_host) return side == Device::cpu;
  const auto& copied = side == Device::gpu ? uploaded_at_start_ : downloaded_at_start_;
  return !copied[residence.storage.index()];
}

void Executor::begin_residence(Device side, std::size_t index) {
  const Residence& residence = book_.residences(side)[index];
  book_.begin_residence(side, index);
  follow_book();
  std::byte* const data = place(side, index);
  const Bytes size = bytes(residence.storage);
  if (places_.canary > Bytes(0)) {
    const std::string what = fmt::format("the canaries of '{}'", name(residence.storage));
    fill(side, data - places_.canary.count(), canary, places_.canary, what);
    fill(side, data + size.count(), canary, places_.canary, what);
  }
  if (book_.residence(side, residence.storage) != index) return;
  if (!there_at_start(side, residence)) return;
  const bool persists = graph_.storage(residence.storage).persistence == Persistence::persistent;
  if (number_ == 1 || !persists) {
    write(side, data, initial_[residence.storage.index()].data(), size, residence.storage);
  }
  book_.loaded(side, residence.storage);
}

void Executor::end_residence(Device side, std::size_t index, std::int32_t step) {
  const Residence& residence = book_.residences(side)[index];
  book_.end_residence(side, index, step);
  follow_book();
  poison_place(side, place(side, index), residence.storage);
}

void Executor::begin_transfer(std::size_t index) {
  const Transfer& t = plan_.transfers[index];
  book_.begin_transfer(index);
  follow_book();
  const std::string who = fmt::format("a copy of '{}'", graph_.storage(t.storage).name);
  std::byte* const gpu = address(Device::gpu, t.storage, who);
  std::byte* const host = address(Device::cpu, t.storage, who);
  std::vector<Ticket> after = compute_;
  after.insert(after.end(), awaited_node_.begin(), awaited_node_.end());
  const Direction direction = direction_of(plan_, t);
  // The compute lane has been told to wait for these, but may have had no kernel since.
  for (const auto& copies : last_copies_) after.insert(after.end(), copies.begin(), copies.end());
  tickets_[index] = need(backend_.copy(direction, gpu, host, bytes(t.storage), after), who);
}

void Executor::end_transfers(const std::vector<std::size_t>& indices) {
  if (indices.empty()) return;
  std::vector<Ticket> tickets;
  for (const std::size_t index : indices) {
    if (tickets_[index].id >= 0) tickets.push_back(tickets_[index]);
    book_.end_transfer(index);
  }
  need(backend_.compute_waits_for(tickets),
       fmt::format("waiting for the copy of '{}'", name(plan_.transfers[indices.front()].storage)));
  ended_.insert(ended_.end(), tickets.begin(), tickets.end());
  for (const std::size_t index : indices) {
    const Ticket ticket = tickets_[index];
    auto& last =
        last_copies_[static_cast<std::size_t>(direction_of(plan_, plan_.transfers[index]))];
    if (ticket.id >= 0 && (last.empty() || last.front().id < ticket.id)) last = {ticket};
  }
}

void Executor::at_boundary(std::int32_t step) {
  const Boundary& b = boundaries_[static_cast<std::size_t>(step)];
  const bool last = static_cast<std::size_t>(step) == graph_.nodes.size();
  for (const NodeId node : b.cpu_ends) await_node(node);
  if (!last) {
    for (const std::size_t i : b.host_ends) end_residence(Device::cpu, i, step);
    for (const std::size_t i : b.host_begins) begin_residence(Device::cpu, i);
  }
  for (const std::size_t i : b.download_begins) begin_transfer(i);
  end_transfers(b.download_ends);
  if (!last) {
    for (const std::size_t i : b.gpu_ends) end_residence(Device::gpu, i, step);
    for (const std::size_t i : b.gpu_begins) begin_residence(Device::gpu, i);
  }
  for (const std::size_t i : b.upload_begins) begin_transfer(i);
  end_transfers(b.upload_ends);
  for (const NodeId node : b.cpu_begins) run_node(node);
}

void Executor::await_node(NodeId id) {
  const std::string who = fmt::format("node '{}'", graph_.node(id).name);
  const Ticket ticket = node_tickets_[id.index()];
  const std::vector<Ticket> tickets{ticket};
  if (ticket.id >= 0) {
    need(backend_.compute_waits_for(tickets), who);
    ended_.push_back(ticket);
  }
  if (awaited_node_.empty() || awaited_node_.front().id < ticket.id) awaited_node_ = tickets;
  book_.finish_node(id);
  if (places_.canary > Bytes(0)) check_canaries(who);
  if (!options_.clean) capture(id.value);
}

void Executor::run_node(NodeId id) {
  const KernelNode& node = graph_.node(id);
  const PlannedNode& planned = plan_.nodes[id.index()];
  const Device side = device_of(plan_, planned);
  book_.begin_node(id);
  follow_book();
  const std::string who = fmt::format("node '{}'", node.name);
  for (const StorageId storage : node.temporaries) {
    poison_place(side, address(side, storage, who), storage);
  }
  const NodeArguments arguments = arguments_of(
      node, plan_.step.batch, [&](StorageId storage) { return address(side, storage, who); });
  const Attributes attributes = attributes_in_step(node, number_);
  KernelCall call{.kernel = node.kernel,
                  .device = side,
                  .attributes = &attributes,
                  .reads = arguments.reads,
                  .writes = arguments.writes,
                  .engine = planned.engine,
                  .tf32 = graph_.settings.convolutions.tf32,
                  .workspace = nullptr,
                  .workspace_bytes = {}};
  if (side == Device::gpu && planned.workspace > Bytes(0)) {
    call.workspace = base(Device::gpu) + places_.workspace[id.index()].count();
    call.workspace_bytes = planned.workspace;
    touched(Device::gpu, call.workspace, planned.workspace);
  }
  node_tickets_[id.index()] = need(backend_.run(call), who);
  if (side == Device::gpu) compute_ = {node_tickets_[id.index()]};
  book_.end_node(id);
  const Device other = side == Device::gpu ? Device::cpu : Device::gpu;
  for (const StorageId storage : book_.made_stale(side, id)) {
    poison_place(other, address(other, storage, who), storage);
  }
  if (side == Device::gpu && places_.canary > Bytes(0)) check_canaries(who);
}

void Executor::check_canaries(const std::string& when) {
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

/// Where a result is to be read: a persistent storage where the next step will look for it, which
/// is where this one found it (of two such sides the one that a mistake left behind); anything else
/// where its newest version is.
std::optional<Device> Executor::side_of_result(StorageId id, bool at_end) const {
  const std::array sides{Device::gpu, Device::cpu};
  std::optional<Device> found;
  for (const Device side : sides) {
    if (at_end && book_.was_there_at_start(side, id)) {
      if (!book_.newest(side, id)) return side;
      found = side;
    }
  }
  for (const Device side : sides) {
    if (!found && book_.newest(side, id)) found = side;
  }
  return found;
}

/// Reads the results that are due.
void Executor::capture(std::int32_t after) {
  const auto begin = std::lower_bound(
      results_.begin(), results_.end(), after,
      [](const ResultPlace& place, std::int32_t step) { return place.after < step; });
  const bool at_end = static_cast<std::size_t>(after) == graph_.nodes.size();
  for (auto result = begin; result != results_.end() && result->after == after; ++result) {
    const StorageId id = result->storage;
    const auto side = side_of_result(id, at_end);
    const auto residence = side ? book_.residence(*side, id) : std::nullopt;
    if (!residence) continue;  // missing: a difference
    std::vector<std::byte>& value = execution_.results[id];
    value.resize(static_cast<std::size_t>(bytes(id).count()));
    read(*side, value.data(), place(*side, *residence), bytes(id), id);
  }
}

void Executor::collect_times() {
  StepTimes& times = execution_.times.emplace_back();
  for (std::size_t i = 0; i < node_tickets_.size(); ++i) {
    times.nodes.push_back(need(backend_.ran(node_tickets_[i]),
                               fmt::format("asking when node '{}' ran", graph_.nodes[i].name)));
  }
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    times.copies.push_back(
        need(backend_.ran(tickets_[i]),
             fmt::format("asking when the copy of '{}' ran", name(plan_.transfers[i].storage))));
  }
}

/// Of what is there at the step's end only what persists stays, and only where the next step will
/// look for it.
void Executor::begin_next_step() {
  for (const Device side : {Device::gpu, Device::cpu}) {
    const std::vector<Residence>& residences = book_.residences(side);
    std::set<std::pair<StorageId, Bytes>> kept;
    for (const Residence& residence : residences) {
      const Storage& storage = graph_.storage(residence.storage);
      if (storage.persistence == Persistence::persistent && there_at_start(side, residence)) {
        kept.emplace(residence.storage, residence.offset);
      }
    }
    for (std::size_t i = 0; i < residences.size(); ++i) {
      const Residence& residence = residences[i];
      if (book_.residence(side, residence.storage) != i) continue;
      if (kept.contains({residence.storage, residence.offset})) continue;
      poison_place(side, place(side, i), residence.storage);
    }
  }
  execution_.earlier.push_back(losses_of(graph_, execution_.results));
  execution_.results.clear();
  book_.begin_step();
  tickets_.assign(tickets_.size(), {});
  node_tickets_.assign(node_tickets_.size(), {});
  compute_.clear();
  awaited_node_.clear();
  last_copies_ = {};
}

void Executor::run_step() {
  const auto steps = static_cast<std::int32_t>(graph_.nodes.size());
  for (std::int32_t step = 0; step < steps; ++step) {
    at_boundary(step);
    const NodeId id{step};
    execution_.gpu_peak = std::max(execution_.gpu_peak, book_.live_on_gpu(id));
    if (device_of(plan_, plan_.nodes[id.index()]) == Device::cpu) continue;
    run_node(id);
    if (!options_.clean) capture(step);
  }
  at_boundary(steps);
  need(backend_.synchronize(), "waiting for the step's end");
  ended_.clear();
  execution_.completed = number_ == options_.steps;
  if (execution_.violations.empty()) collect_times();
  need(backend_.forget_tickets(), "forgetting the step's tickets");
  book_.end_step();
  capture(steps);
  if (places_.canary > Bytes(0)) check_canaries("the step");
  follow_book();
}

Result<Execution> Executor::run() {
  backend_.set_copy_timing(options_.timing);
  try {
    need(backend_.allocate(
             {.gpu = places_.gpu_arena, .host = places_.host_arena, .pinned = places_.pinned}),
         "allocating the arenas");
    check_bounds();
    prepare();
    for (; number_ <= options_.steps; ++number_) {
      if (number_ > 1) begin_next_step();
      run_step();
    }
  } catch (const Stop&) {
    // What stopped it is the failure, or among the violations or the overruns.
  }
  if (!failure_.empty()) return tl::unexpected(std::move(failure_));
  execution_.h2d = backend_.copied(Direction::h2d);
  execution_.d2h = backend_.copied(Direction::d2h);
  return execution_;
}

}  // namespace

Result<Execution> execute(const Plan& plan, Backend& backend, const ExecutionOptions& options) {
  assert(options.steps >= 1 && (options.steps == 1 || !options.padded));
  return Executor(plan, backend, options).run();
}

}  // namespace stowage
