#include "answers/exporting/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "planner/plan/lanes.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/problem/rates.hpp"
#include "planner/validate/node_seconds.hpp"

namespace stowage {

namespace {

TraceSlice slice_of_node(const StepGraph& graph, NodeId node, const Span& span) {
  const KernelNode& of = graph.node(node);
  TraceSlice slice{.name = of.name,
                   .category = std::string(to_string(of.phase)),
                   .begin = span.begin,
                   .end = span.end,
                   .details = {{"kernel", std::string(kernel_name(of))}}};
  if (of.op.valid()) {
    const Origin& origin = graph.origins[of.op.index()];
    slice.details.emplace_back("layer", origin.layer);
    if (!origin.place.empty()) slice.details.emplace_back("place", origin.place);
  }
  slice.details.emplace_back("step", std::int64_t{node.value});
  return slice;
}

TraceSlice slice_of_copy(const Plan& plan, const Transfer& transfer, const Span& span) {
  const Storage& storage = plan.storage(transfer.storage);
  return {.name = storage.name,
          .category = std::string(to_string(storage.storage_class)),
          .begin = span.begin,
          .end = span.end,
          .details = {{"bytes", plan.bytes(transfer.storage).count()},
                      {"issued_at_step", std::int64_t{transfer.begin}},
                      {"awaited_at_step", std::int64_t{transfer.end}}}};
}

/// Adds a sample wherever the value differs from the one before.
TraceCounter counter_of(std::string name, std::span<const Bytes> by_node,
                        const std::vector<double>& begin) {
  TraceCounter counter{.name = std::move(name)};
  for (std::size_t i = 0; i < by_node.size(); ++i) {
    const bool is_new = counter.samples.empty() || counter.samples.back().second != by_node[i];
    if (is_new) counter.samples.emplace_back(begin[i], by_node[i]);
  }
  return counter;
}

/// The classes that are ever there, their sum, and what is set aside. `begin`: by node, ascending.
void add_counters(const MemoryOverStep& memory, const std::vector<double>& begin,
                  const std::string& side, StepTrace& trace) {
  for (std::size_t i = 0; i < memory.by_class.size(); ++i) {
    const std::vector<Bytes>& bytes = memory.by_class[i];
    if (std::ranges::all_of(bytes, [](Bytes b) { return b == Bytes(); })) continue;
    std::string words(to_string(static_cast<StorageClass>(i)));
    std::ranges::replace(words, '_', ' ');
    trace.counters.push_back(counter_of(fmt::format("{}: {}", side, words), bytes, begin));
  }
  trace.counters.push_back(counter_of(fmt::format("{}: all tensors", side), memory.live, begin));
  trace.counters.push_back(counter_of(fmt::format("{}: set aside", side), memory.reserved, begin));
}

/// By node: when its step begins. A node of the CPU's has the time at which its boundary is
/// reached.
std::vector<double> begin_of_steps(const Plan& plan, const LaneTimeline& timeline) {
  std::vector<double> begin;
  double latest = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool is_on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    latest = std::max(latest, is_on_gpu ? timeline.nodes[i].begin : timeline.arrivals[i]);
    begin.push_back(latest);
  }
  return begin;
}

void sort_by_begin(TraceTrack& track) {
  std::ranges::stable_sort(track.slices, {}, &TraceSlice::begin);
}

}  // namespace

StepTrace trace_step(const Plan& plan) {
  std::vector<double> nodes, copies;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) nodes.push_back(node_seconds(plan, i));
  for (const Transfer& transfer : plan.transfers) {
    copies.push_back(copy_seconds(plan, transfer.storage, plan.machine.link(transfer.link)));
  }
  const LaneTimeline timeline = simulate_lanes(nodes, plan.transfers, copies, cpu_windows(plan));
  TraceTrack gpu{.name = "GPU"}, cpu{.name = "CPU"};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool is_on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    (is_on_gpu ? gpu : cpu)
        .slices.push_back(slice_of_node(*plan.step.graph, NodeId::of(i), timeline.nodes[i]));
  }
  sort_by_begin(cpu);
  TraceTrack up{.name = "copies to the GPU"}, down{.name = "copies to the host"};
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const bool is_up = direction_of(plan, plan.transfers[i]) == Direction::h2d;
    (is_up ? up : down)
        .slices.push_back(slice_of_copy(plan, plan.transfers[i], timeline.transfers[i]));
  }
  StepTrace trace{.title = fmt::format("{}, plan {}, {}", plan.inputs.model_name, plan.name,
                                       plan.inputs.card.name),
                  .tracks = {std::move(gpu), std::move(cpu), std::move(up), std::move(down)}};
  const std::vector<double> begin = begin_of_steps(plan, timeline);
  add_counters(memory_over_step(plan, MemoryKind::device), begin, "GPU memory", trace);
  add_counters(memory_over_step(plan, MemoryKind::pinned), begin, "pinned host memory", trace);
  return trace;
}

StepTrace trace_step(const SizedStep& step, const Card& card, const MemoryOverStep& memory) {
  const Rates rates = make_rates(card, {});
  TraceTrack gpu{.name = "GPU"};
  std::vector<double> begin;
  double now = 0;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    const double end = now + gpu_seconds(rates, step, NodeId::of(i));
    begin.push_back(now);
    gpu.slices.push_back(slice_of_node(*step.graph, NodeId::of(i), {now, end}));
    now = end;
  }
  StepTrace trace{.title = fmt::format("{}, {}", step.graph->model, card.name),
                  .tracks = {std::move(gpu)}};
  add_counters(memory, begin, "GPU memory", trace);
  return trace;
}

}  // namespace stowage
