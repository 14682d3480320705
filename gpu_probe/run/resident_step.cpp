#include "gpu_probe/run/resident_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "gpu_probe/host/host_kernels.hpp"
#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/perturbed_rounding.hpp"

namespace stowage {
namespace {

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

constexpr std::size_t line = 64;

Buffer make_buffer(std::size_t size) {
  void* const data = std::aligned_alloc(line, (size / line + 1) * line);
  if (data == nullptr) throw std::bad_alloc();
  return Buffer(static_cast<std::byte*>(data));
}

/// The last node that uses each storage, by StorageId; persistent storages are kept to the end.
std::vector<std::size_t> last_touches(const StepGraph& graph) {
  std::vector<std::size_t> last(graph.storages.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const StorageId id : storages_read(graph.nodes[i])) last[id.index()] = i;
    for (const StorageId id : storages_written(graph.nodes[i])) last[id.index()] = i;
  }
  for (std::size_t s = 0; s < last.size(); ++s) {
    if (graph.storages[s].persistence == Persistence::persistent) last[s] = graph.nodes.size();
  }
  return last;
}

class ResidentStep {
 public:
  ResidentStep(const StepGraph& graph, std::int64_t batch, std::uint64_t rounding = 0)
      : graph_(graph),
        batch_(batch),
        rounding_(rounding),
        initial_(initial_values(graph, batch)),
        last_(last_touches(graph)),
        buffers_(graph.storages.size()) {}

  /// Runs one step; each further call runs the next.
  Result<StepResults> run() {
    ++step_number_;
    const std::vector<ResultPlace> places = results_of(graph_);
    StepResults results;
    auto place = places.begin();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (auto done = run_node(graph_.nodes[i]); !done) return tl::unexpected(done.error());
      for (; place != places.end() && place->after == static_cast<std::int32_t>(i); ++place) {
        results[place->storage] = contents(place->storage);
      }
      release(i);
    }
    for (; place != places.end(); ++place) results[place->storage] = contents(place->storage);
    return results;
  }

 private:
  std::size_t size(StorageId id) const {
    return static_cast<std::size_t>(graph_.storage(id).bytes.at(batch_));
  }

  std::byte* address(StorageId id) {
    Buffer& buffer = buffers_[id.index()];
    if (buffer == nullptr) {
      buffer = make_buffer(size(id));
      const auto& value = initial_[id.index()];
      std::copy(value.begin(), value.end(), buffer.get());
    }
    return buffer.get();
  }

  std::vector<std::byte> contents(StorageId id) {
    const std::byte* const data = address(id);
    return {data, data + size(id)};
  }

  Result<void> run_node(const KernelNode& node) {
    const NodeArguments arguments =
        arguments_of(node, batch_, [this](StorageId id) { return address(id); });
    const Attributes attributes = attributes_in_step(node, step_number_);
    const auto done = run_host_kernel({.kernel = node.kernel,
                                       .device = Device::cpu,
                                       .attributes = &attributes,
                                       .reads = arguments.reads,
                                       .writes = arguments.writes,
                                       .engine = {},
                                       .workspace = nullptr,
                                       .workspace_bytes = {}});
    if (done) {
      if (rounding_ != 0) {
        perturb_rounding(graph_, node, arguments.writes,
                         rounding_ * 1'000'003 + ++perturbed_nodes_);
      }
      return {};
    }
    return failure(fmt::format("node '{}': {}", node.name, done.error().front().message));
  }

  void release(std::size_t node) {
    for (const auto& storages :
         {storages_read(graph_.nodes[node]), storages_written(graph_.nodes[node])}) {
      for (const StorageId id : storages) {
        if (last_[id.index()] == node) buffers_[id.index()].reset();
      }
    }
  }

  const StepGraph& graph_;
  std::int64_t batch_;
  std::uint64_t rounding_;  // 0, or a seed
  std::vector<std::vector<std::byte>> initial_;
  std::vector<std::size_t> last_;
  std::vector<Buffer> buffers_;
  std::int64_t step_number_ = 0;       // from 1 on
  std::uint64_t perturbed_nodes_ = 0;  // whose rounding was perturbed
};

}  // namespace

Result<StepResults> run_resident_step(const StepGraph& graph, std::int64_t batch) {
  return ResidentStep(graph, batch).run();
}

Result<std::vector<StepResults>> run_resident_steps(const StepGraph& graph, std::int64_t batch,
                                                    std::int64_t steps, std::uint64_t rounding) {
  ResidentStep step(graph, batch, rounding);
  std::vector<StepResults> all;
  for (std::int64_t number = 1; number <= steps; ++number) {
    auto results = step.run();
    if (!results) return tl::unexpected(results.error());
    const bool is_whole = number == 1 || number == steps;
    all.push_back(is_whole ? *std::move(results) : losses_of(graph, *results));
  }
  return all;
}

}  // namespace stowage
