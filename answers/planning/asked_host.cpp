#include "answers/planning/asked_host.hpp"

#include "answers/question/question_error.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "gpu_probe/device/this_host.hpp"

namespace stowage {

namespace {

Result<Host> described_host(const PlanQuestion& asked) {
  if (!asked.host.empty()) {
    auto source = read_source(asked.host, FileKind::host);
    if (!source) return tl::unexpected(std::move(source.error()));
    return load_host(std::move(*source));
  }
  if (asked.calibration.empty()) return this_host();
  const auto source = read_source(asked.calibration, FileKind::calibration);
  if (!source) return tl::unexpected(source.error());
  return calibrated_host(*source, this_host());
}

}  // namespace

Result<Host> find_asked_host(const PlanQuestion& asked) {
  auto host = described_host(asked);
  if (host && asked.host_memory) {
    if (*asked.host_memory <= Bytes()) {
      return failure(question_error("`host_memory` 0 leaves no host"));
    }
    host->memory = *asked.host_memory;
    host->pinned_limit = Bytes(host->memory.count() / 2);
  }
  return host;
}

}  // namespace stowage
