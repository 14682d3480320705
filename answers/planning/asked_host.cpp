#include "answers/planning/asked_host.hpp"

#include <filesystem>

#include "answers/question/config_directory.hpp"
#include "answers/question/question_error.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "gpu_probe/device/this_host.hpp"

namespace stowage {

namespace {

/// The host of the configurations, whose name in a plan's file is the same wherever they lie.
Result<Host> generic_host(const PlanQuestion& asked) {
  std::string path = asked.step.model.configs.hosts() + "/generic.yaml";
  if (!std::filesystem::exists(path)) {
    const auto own = find_configs(std::nullopt);
    if (own) path = own->hosts() + "/generic.yaml";
  }
  auto source = read_source(path, FileKind::host);
  if (!source) return tl::unexpected(std::move(source.error()));
  auto host = load_host(std::move(*source));
  if (host) host->source = "configs/hosts/generic.yaml";
  return host;
}

Result<Host> described_host(const PlanQuestion& asked) {
  const bool is_here = asked.host == this_machine || asked.host == "this";
  if (!asked.host.empty() && !is_here) {
    auto source = read_source(asked.host, FileKind::host);
    if (!source) return tl::unexpected(std::move(source.error()));
    return load_host(std::move(*source));
  }
  if (asked.calibration.empty()) return is_here ? this_host() : generic_host(asked);
  // What was measured here is of this machine.
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
