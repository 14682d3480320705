#include "gpu_probe/run/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <set>

#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/plan_execution.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

void PlanExecution::violation(std::string text) {
  execution_.violations.push_back(std::move(text));
  if (options_.stop_at_violation) throw Stop{};
}

void PlanExecution::report_violations_of_book() {
  const auto& violations = book_.violations();
  while (book_read_ < violations.size()) violation(violations[book_read_++]);
}

void PlanExecution::prepare() {
  uploaded_at_start_.resize(graph_.storages.size());
  downloaded_at_start_.resize(graph_.storages.size());
  for (const Transfer& t : plan_.transfers) {
    if (t.begin != 0) continue;
    const bool upload = direction_of(plan_, t) == Direction::h2d;
    (upload ? uploaded_at_start_ : downloaded_at_start_)[t.storage.index()] = true;
  }
  poison_arenas();
}

bool PlanExecution::there_at_start(Device side, const Residence& residence) const {
  const Storage& storage = graph_.storage(residence.storage);
  if (residence.steps.begin != 0 || storage.persistence == Persistence::transient) return false;
  if (storage.persistence == Persistence::from_host) return side == Device::cpu;
  const auto& copied = side == Device::gpu ? uploaded_at_start_ : downloaded_at_start_;
  return !copied[residence.storage.index()];
}

void PlanExecution::begin_residence(Device side, std::size_t index) {
  const Residence& residence = book_.residences(side)[index];
  book_.begin_residence(side, index);
  report_violations_of_book();
  std::byte* const data = place(side, index);
  const Bytes size = bytes(residence.storage);
  if (places_.canary > Bytes(0)) put_canaries(side, data, residence.storage);
  if (book_.residence(side, residence.storage) != index) return;
  if (!there_at_start(side, residence)) return;
  const bool persists = graph_.storage(residence.storage).persistence == Persistence::persistent;
  if (step_number_ == 1 || !persists) {
    write(side, data, initial_[residence.storage.index()].data(), size, residence.storage);
  }
  book_.loaded(side, residence.storage);
}

void PlanExecution::end_residence(Device side, std::size_t index, std::int32_t step) {
  const Residence& residence = book_.residences(side)[index];
  book_.end_residence(side, index, step);
  report_violations_of_book();
  poison_place(side, place(side, index), residence.storage);
}

void PlanExecution::begin_transfer(std::size_t index) {
  const Transfer& t = plan_.transfers[index];
  book_.begin_transfer(index);
  report_violations_of_book();
  const std::string who = fmt::format("a copy of '{}'", graph_.storage(t.storage).name);
  std::byte* const gpu = address(Device::gpu, t.storage, who);
  std::byte* const host = address(Device::cpu, t.storage, who);
  std::vector<Ticket> after = compute_;
  after.insert(after.end(), awaited_node_.begin(), awaited_node_.end());
  const Direction direction = direction_of(plan_, t);
  // The compute lane waits for these too, but may have had no kernel since it was told so.
  for (const auto& copies : last_copies_) after.insert(after.end(), copies.begin(), copies.end());
  tickets_[index] =
      value_or_stop(backend_.copy(direction, gpu, host, bytes(t.storage), after), who);
}

void PlanExecution::end_transfers(const std::vector<std::size_t>& indices) {
  if (indices.empty()) return;
  std::vector<Ticket> tickets;
  for (const std::size_t index : indices) {
    if (tickets_[index].id >= 0) tickets.push_back(tickets_[index]);
    book_.end_transfer(index);
  }
  value_or_stop(
      backend_.compute_waits_for(tickets),
      fmt::format("waiting for the copy of '{}'", name(plan_.transfers[indices.front()].storage)));
  ended_.insert(ended_.end(), tickets.begin(), tickets.end());
  for (const std::size_t index : indices) {
    const Ticket ticket = tickets_[index];
    auto& last =
        last_copies_[static_cast<std::size_t>(direction_of(plan_, plan_.transfers[index]))];
    if (ticket.id >= 0 && (last.empty() || last.front().id < ticket.id)) last = {ticket};
  }
}

void PlanExecution::at_boundary(std::int32_t step) {
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

void PlanExecution::await_node(NodeId id) {
  const std::string who = fmt::format("node '{}'", graph_.node(id).name);
  const Ticket ticket = node_tickets_[id.index()];
  const std::vector<Ticket> tickets{ticket};
  if (ticket.id >= 0) {
    value_or_stop(backend_.compute_waits_for(tickets), who);
    ended_.push_back(ticket);
  }
  if (awaited_node_.empty() || awaited_node_.front().id < ticket.id) awaited_node_ = tickets;
  book_.finish_node(id);
  if (places_.canary > Bytes(0)) check_canaries(who);
  if (!options_.clean) read_results(id.value);
}

void PlanExecution::run_node(NodeId id) {
  const KernelNode& node = graph_.node(id);
  const PlannedNode& planned = plan_.nodes[id.index()];
  const Device side = device_of(plan_, planned);
  book_.begin_node(id);
  report_violations_of_book();
  const std::string who = fmt::format("node '{}'", node.name);
  for (const StorageId storage : node.temporaries) {
    poison_place(side, address(side, storage, who), storage);
  }
  const NodeArguments arguments = arguments_of(
      node, plan_.step.batch, [&](StorageId storage) { return address(side, storage, who); });
  const Attributes attributes = attributes_in_step(node, step_number_);
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
  node_tickets_[id.index()] = value_or_stop(backend_.run(call), who);
  if (side == Device::gpu) compute_ = {node_tickets_[id.index()]};
  book_.end_node(id);
  const Device other = side == Device::gpu ? Device::cpu : Device::gpu;
  for (const StorageId storage : book_.made_stale(side, id)) {
    poison_place(other, address(other, storage, who), storage);
  }
  if (side == Device::gpu && places_.canary > Bytes(0)) check_canaries(who);
}

/// The side on which a result is read. A persistent storage is read where the next step will look
/// for it, which is where this step found it; where both sides had it, a side without the newest
/// version is taken, since that is the plan's mistake. Anything else is read where its newest
/// version is.
std::optional<Device> PlanExecution::side_of_result(StorageId id, bool at_end) const {
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

/// Reads the results whose last writer is node `after`; the number of nodes: those at the step's
/// end.
void PlanExecution::read_results(std::int32_t after) {
  const auto begin = std::lower_bound(
      results_.begin(), results_.end(), after,
      [](const ResultPlace& place, std::int32_t step) { return place.after < step; });
  const bool at_end = static_cast<std::size_t>(after) == graph_.nodes.size();
  for (auto result = begin; result != results_.end() && result->after == after; ++result) {
    const StorageId id = result->storage;
    const auto side = side_of_result(id, at_end);
    const auto residence = side ? book_.residence(*side, id) : std::nullopt;
    if (!residence) continue;  // a missing result counts as a difference
    std::vector<std::byte>& value = execution_.results[id];
    value.resize(static_cast<std::size_t>(bytes(id).count()));
    read(*side, value.data(), place(*side, *residence), bytes(id), id);
  }
}

void PlanExecution::collect_times() {
  StepTimes& times = execution_.times.emplace_back();
  for (std::size_t i = 0; i < node_tickets_.size(); ++i) {
    times.nodes.push_back(
        value_or_stop(backend_.ran(node_tickets_[i]),
                      fmt::format("asking when node '{}' ran", graph_.nodes[i].name)));
  }
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    times.copies.push_back(value_or_stop(
        backend_.ran(tickets_[i]),
        fmt::format("asking when the copy of '{}' ran", name(plan_.transfers[i].storage))));
  }
}

/// Poisons everything except the persistent storages that lie where the next step will look for
/// them.
void PlanExecution::begin_next_step() {
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

void PlanExecution::run_step() {
  const auto steps = static_cast<std::int32_t>(graph_.nodes.size());
  for (std::int32_t step = 0; step < steps; ++step) {
    at_boundary(step);
    const NodeId id{step};
    execution_.gpu_peak = std::max(execution_.gpu_peak, book_.live_on_gpu(id));
    if (device_of(plan_, plan_.nodes[id.index()]) == Device::cpu) continue;
    run_node(id);
    if (!options_.clean) read_results(step);
  }
  at_boundary(steps);
  value_or_stop(backend_.synchronize(), "waiting for the step's end");
  ended_.clear();
  execution_.completed = step_number_ == options_.steps;
  if (execution_.violations.empty()) collect_times();
  value_or_stop(backend_.forget_tickets(), "forgetting the step's tickets");
  book_.end_step();
  read_results(steps);
  if (places_.canary > Bytes(0)) check_canaries("the step");
  report_violations_of_book();
}

Result<Execution> PlanExecution::run() {
  backend_.set_copy_timing(options_.timing);
  try {
    value_or_stop(
        backend_.allocate(
            {.gpu = places_.gpu_arena, .host = places_.host_arena, .pinned = places_.pinned}),
        "allocating the arenas");
    check_bounds();
    prepare();
    for (; step_number_ <= options_.steps; ++step_number_) {
      if (step_number_ > 1) begin_next_step();
      run_step();
    }
  } catch (const Stop&) {
    // The reason is in failure_, in the violations or in the overruns.
  }
  if (!failure_.empty()) return tl::unexpected(std::move(failure_));
  execution_.h2d = backend_.copied(Direction::h2d);
  execution_.d2h = backend_.copied(Direction::d2h);
  return execution_;
}

Result<Execution> execute(const Plan& plan, Backend& backend, const ExecutionOptions& options) {
  assert(options.steps >= 1 && (options.steps == 1 || !options.padded));
  return PlanExecution(plan, backend, options).run();
}

}  // namespace stowage
