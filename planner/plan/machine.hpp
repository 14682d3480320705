// Machine: what a plan runs on, as three small tables: processors, memories, and the links between
// memories. Nodes, residences and transfers refer to them by id, so that a plan can name more than
// one GPU and its host; who reads a plan says which machines it knows (two_sides.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/id.hpp"
#include "planner/problem/rates.hpp"

namespace stowage {

using ProcessorId = Id<struct ProcessorTag>;
using MemoryId = Id<struct MemoryTag>;
using LinkId = Id<struct LinkTag>;

enum class ProcessorKind : std::uint8_t { gpu, cpu };
[[nodiscard]] std::string_view to_string(ProcessorKind kind);

enum class MemoryKind : std::uint8_t {
  device,    ///< a GPU's own
  pinned,    ///< the host's, page-locked: copies to and from a GPU run beside its kernels
  pageable,  ///< the host's
};
[[nodiscard]] std::string_view to_string(MemoryKind kind);

struct Processor {
  std::string name;
  ProcessorKind kind = ProcessorKind::gpu;
  MemoryId memory;                          ///< where its kernels' arguments are
  double flops = 0;                         ///< a second; 0: not known, limits nothing
  double bandwidth = 0;                     ///< bytes a second; 0 likewise
  double launch = 0;                        ///< seconds a kernel
  std::optional<KernelRates> kernels = {};  ///< none: `flops` and `bandwidth` for all kernels
  /// By NodeId of the plan's step: what a run measured, which goes before all rates; empty:
  /// nothing.
  std::vector<double> node_seconds = {};
  bool operator==(const Processor&) const = default;
};

struct Memory {
  std::string name;
  MemoryKind kind = MemoryKind::device;
  bool operator==(const Memory&) const = default;
};

/// One direction; its copies run one after the other.
struct Link {
  std::string name;
  MemoryId from, to;
  double bandwidth = 0;  ///< bytes a second; 0: not known, limits nothing
  double latency = 0;    ///< seconds a copy
  bool operator==(const Link&) const = default;
};

struct Machine {
  std::vector<Processor> processors;
  std::vector<Memory> memories;
  std::vector<Link> links;
  std::string measured_on = {};  ///< the backend that node_seconds are of; "": there are none

  [[nodiscard]] const Processor& processor(ProcessorId id) const { return processors[id.index()]; }
  [[nodiscard]] const Memory& memory(MemoryId id) const { return memories[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links[id.index()]; }
  bool operator==(const Machine&) const = default;
};

/// A GPU with its memory, the CPU with pinned memory, pageable memory, and the two links between
/// the GPU's and pinned memory. What was measured is not in it: that is of a step's nodes.
[[nodiscard]] Machine gpu_and_host(const Rates& rates);
/// That machine with what the rates say was measured of the step's nodes.
[[nodiscard]] Machine gpu_and_host(const Rates& rates, const SizedStep& step);
// The ids of that machine.
inline constexpr ProcessorId gpu_processor{0}, cpu_processor{1};
inline constexpr MemoryId gpu_memory{0}, pinned_memory{1}, pageable_memory{2};
inline constexpr LinkId upload_link{0}, download_link{1};

}  // namespace stowage
