// The fields of a plan's records, one list for reading and writing.
//
// `fields` is a Section, which fills the record, or a SectionWriter, which writes it (the record is
// const then). Units are part of the keys: bytes are integers, rates are a second, latencies are
// seconds.
#pragma once

#include <array>

#include "estimator/card/card.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

/// All fields but its lists, and but `memory` and `professional`, which not every card has.
template <typename Fields, typename CardRecord>
void card_fields(Fields& fields, CardRecord& card) {
  fields.text("name", card.name);
  fields.text("architecture", card.architecture);
  fields.real("compute_capability", card.compute_capability);
  fields.count("sm_count", card.sm_count);
  fields.bytes("nvml_total_bytes", card.nvml_total);
  fields.bytes("cuda_total_bytes", card.cuda_total);
  fields.text("total_source", card.total_source);
  fields.bytes("context_bytes", card.context);
  fields.text("context_source", card.context_source);
  fields.real("memory_bandwidth", card.memory_bandwidth);
  fields.real("fp32_flops", card.fp32_flops);
  fields.real("tf32_flops", card.tf32_flops);
  fields.real("fp16_flops", card.fp16_flops);
  fields.real("h2d_bandwidth", card.h2d_bandwidth);
  fields.real("d2h_bandwidth", card.d2h_bandwidth);
  fields.real("pageable_bandwidth", card.pageable_bandwidth);
  fields.text("pcie", card.pcie);
  fields.text("rate_source", card.rate_source);
  fields.text("confidence", card.confidence);
  fields.literal("cudnn_device", card.cudnn_device_json);
}

template <typename Fields, typename Record>
void observed_total_fields(Fields& fields, Record& observed) {
  fields.optional_bytes("nvml_bytes", observed.nvml);
  fields.optional_bytes("cuda_bytes", observed.cuda);
  fields.text("source", observed.source);
}

template <typename Fields, typename Record>
void measurement_fields(Fields& fields, Record& measurement) {
  fields.choice("runtime", runtimes, measurement.runtime);
  fields.version("cuda", measurement.stack.cuda);
  fields.choice("loading", std::array{ModuleLoading::lazy, ModuleLoading::eager},
                measurement.stack.loading);
  fields.version("pytorch", measurement.stack.pytorch);
  fields.optional_bytes("context_bytes", measurement.context);
  fields.optional_bytes("cublas_bytes", measurement.cublas);
  fields.optional_bytes("cudnn_bytes", measurement.cudnn);
  fields.text("source", measurement.source);
  fields.boolean("calibrated", measurement.calibrated);
}

template <typename Fields, typename HostRecord>
void host_fields(Fields& fields, HostRecord& host) {
  fields.text("name", host.name);
  fields.bytes("memory_bytes", host.memory);
  fields.bytes("pinned_limit_bytes", host.pinned_limit);
  fields.real("cpu_flops", host.cpu_flops);
  fields.real("memory_bandwidth", host.memory_bandwidth);
  fields.real("kernel_latency", host.kernel_latency);
  fields.real("h2d_bandwidth", host.h2d_bandwidth);
  fields.real("d2h_bandwidth", host.d2h_bandwidth);
  fields.real("link_latency", host.link_latency);
  fields.text("source", host.source);
}

// The memories of a processor and of a link are written beside these fields, by name.

template <typename Fields, typename ProcessorRecord>
void processor_fields(Fields& fields, ProcessorRecord& processor) {
  fields.name("name", processor.name);
  fields.choice("kind", std::array{ProcessorKind::gpu, ProcessorKind::cpu}, processor.kind);
  fields.real("flops", processor.flops);
  fields.real("bandwidth", processor.bandwidth);
  fields.real("launch", processor.launch);
}

// A processor's KernelRates are a mapping of three: these, `formats` and `kinds`, by their names.

template <typename Fields, typename KernelRecord>
void kernel_fields(Fields& fields, KernelRecord& kernels) {
  fields.real("multiprocessors", kernels.multiprocessors);
}

template <typename Fields, typename ShareRecord>
void kind_fields(Fields& fields, ShareRecord& share) {
  fields.real("arithmetic", share.arithmetic);
  fields.real("bandwidth", share.bandwidth);
}

template <typename Fields, typename MemoryRecord>
void memory_fields(Fields& fields, MemoryRecord& memory) {
  fields.name("name", memory.name);
  fields.choice("kind", std::array{MemoryKind::device, MemoryKind::pinned, MemoryKind::pageable},
                memory.kind);
}

template <typename Fields, typename LinkRecord>
void link_fields(Fields& fields, LinkRecord& link) {
  fields.name("name", link.name);
  fields.real("bandwidth", link.bandwidth);
  fields.real("latency", link.latency);
}

template <typename Fields, typename ReasonRecord>
void pin_reason_fields(Fields& fields, ReasonRecord& reason) {
  fields.choice(
      "kind",
      std::array{PinReason::Kind::asked, PinReason::Kind::no_gpu_kernel, PinReason::Kind::home},
      reason.kind);
  fields.text("text", reason.text);
}

template <typename Fields, typename TotalRecord>
void total_fields(Fields& fields, TotalRecord& totals) {
  fields.bytes("gpu_peak_bytes", totals.gpu_peak);
  fields.bytes("arena_bytes", totals.arena);
  fields.bytes("arena_lower_bound_bytes", totals.arena_lower_bound);
  fields.bytes("host_peak_bytes", totals.host_peak);
  fields.bytes_or_none("pageable_peak_bytes", totals.pageable_peak);
  fields.bytes("h2d_bytes", totals.h2d);
  fields.bytes("d2h_bytes", totals.d2h);
  fields.bytes("pcie_lower_bound_bytes", totals.pcie_lower_bound);
  fields.real("cost_seconds", totals.cost_seconds);
  fields.real("cost_lower_bound_seconds", totals.cost_lower_bound_seconds);
  fields.real("all_gpu_cost_seconds", totals.all_gpu_cost_seconds);
  fields.real("step_seconds", totals.step_seconds);
  fields.real("all_gpu_step_seconds", totals.all_gpu_step_seconds);
  fields.optional_real("step_lower_bound_seconds", totals.step_lower_bound_seconds);
  fields.boolean("proved_optimal", totals.proved_optimal);
}

}  // namespace stowage
