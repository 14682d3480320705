#include "answers/library/memory_peaks.hpp"

#include <string>

namespace stowage {

namespace {

void add_tensors(const Footprint& footprint, MemoryPeak& peak) {
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = footprint.by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    peak.classes.push_back(
        {std::string(to_string(static_cast<StorageClass>(c))), bytes.count(), ""});
  }
  for (const FootprintRow& row : footprint.rows) {
    peak.tensors.push_back({.name = name_of(footprint, row),
                            .layer = std::string(footprint.graph->layer(row.entry.op)),
                            .kind = std::string(to_string(row.entry.storage_class)),
                            .bytes = row.bytes.count()});
  }
}

}  // namespace

MemoryPeak memory_peak(const CheckReport& report, const Card& card) {
  MemoryPeak peak{.device = card.name,
                  .fits = report.fits,
                  .device_bytes = report.device_bytes.count(),
                  .tensor_bytes = report.tensor_bytes().count(),
                  .total_bytes = report.total_bytes.count(),
                  .available_bytes = report.available_bytes.count(),
                  .headroom_bytes = report.headroom.count(),
                  .at = report.peak_at(),
                  .culprit = report.culprit,
                  .workspaces = std::string(to_string(report.workspace_origin))};
  add_tensors(report.footprint, peak);
  for (const RuntimeRow& row : report.runtime_rows) {
    peak.runtime.push_back({row.name, row.bytes.count(), row.source});
  }
  for (const PhasePeak& phase : report.phases) {
    peak.phases.push_back({phase.name, phase.tensor_bytes.count(), phase.device_bytes.count()});
  }
  return peak;
}

}  // namespace stowage
