// A step's trace in Perfetto's format: protobuf packets (perfetto/trace/trace.proto), which
// ui.perfetto.dev and its trace processor open.
//
// One process named as the trace, a track below it for each lane and for each counter. Times are
// nanoseconds, counters bytes.
#pragma once

#include <string>

#include "answers/exporting/step_trace.hpp"

namespace stowage {

[[nodiscard]] std::string perfetto_trace(const StepTrace& trace);

}  // namespace stowage
