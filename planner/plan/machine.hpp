// Machine: what a plan runs on, as three small tables: processors, memories, and the links between
// memories.
//
// Nodes, residences and transfers refer to the rows by id, so that a plan file can describe
// machines other than one GPU and its host. Code that reads a plan checks that it supports the
// machine (two_sides.hpp).
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
  double bandwidth = 0;                     ///< bytes a second; 0: not known, limits nothing
  double launch = 0;                        ///< seconds a kernel
  std::optional<KernelRates> kernels = {};  ///< none: `flops` and `bandwidth` for all kernels
  /// By NodeId of the plan's step: measured seconds, which override all rates; empty: none.
  std::vector<double> node_seconds = {};
  bool operator==(const Processor&) const = default;
};

struct Memory {
  std::string name;
  MemoryKind kind = MemoryKind::device;
  bool operator==(const Memory&) const = default;
};

/// One direction of a link between two memories. Its copies run one after the other.
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
  std::string measured_on = {};  ///< the backend that measured node_seconds; "": none did

  [[nodiscard]] const Processor& processor(ProcessorId id) const { return processors[id.index()]; }
  [[nodiscard]] const Memory& memory(MemoryId id) const { return memories[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links[id.index()]; }
  bool operator==(const Machine&) const = default;
};

/// A GPU with its memory, the CPU with pinned memory, pageable memory, and the two links between
/// the GPU's memory and pinned memory. Measured seconds are left out, since they belong to the
/// nodes of a step.
[[nodiscard]] Machine gpu_and_host(const Rates& rates);
/// The same machine with the seconds that `rates` have for the nodes of the step.
[[nodiscard]] Machine gpu_and_host(const Rates& rates, const SizedStep& step);
// The ids of that machine.
inline constexpr ProcessorId gpu_processor{0}, cpu_processor{1};
inline constexpr MemoryId gpu_memory{0}, pinned_memory{1}, pageable_memory{2};
inline constexpr LinkId upload_link{0}, download_link{1};

}  // namespace stowage
