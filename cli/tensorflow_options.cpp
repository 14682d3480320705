#include "cli/tensorflow_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stowage {

namespace {

Diagnostics mistakes_of(const Arguments& arguments, Runtime runtime) {
  Diagnostics mistakes;
  constexpr std::array<std::string_view, 4> options{"memory-limit", "memory-growth",
                                                    "memory-fraction", "virtual-gpus"};
  for (const std::string_view option : options) {
    if (runtime == Runtime::tensorflow || !arguments.given(option)) continue;
    mistakes.push_back(command_line_error(
        fmt::format("--{} is for --runtime tensorflow, not for {}", option, to_string(runtime))));
  }
  if (runtime == Runtime::tensorflow && arguments.given("gpus")) {
    mistakes.push_back(command_line_error("--gpus is not served with --runtime tensorflow",
                                          "--virtual-gpus are logical devices of one card"));
  }
  if (arguments.given("memory-fraction") && arguments.given("memory-limit")) {
    mistakes.push_back(command_line_error(
        "--memory-limit and --memory-fraction both say how large the pool is; give one"));
  }
  if (arguments.given("virtual-gpus") && !arguments.given("memory-limit")) {
    mistakes.push_back(
        command_line_error("--virtual-gpus wants the --memory-limit of each of them"));
  }
  return mistakes;
}

}  // namespace

Result<TensorFlowMemory> requested_tensorflow(const Arguments& arguments, Runtime runtime) {
  if (Diagnostics mistakes = mistakes_of(arguments, runtime); !mistakes.empty()) {
    return tl::unexpected(std::move(mistakes));
  }
  TensorFlowMemory memory{.allow_growth = arguments.flag("memory-growth")};
  memory.per_process_fraction = arguments.number("memory-fraction").value_or(0);
  if (const auto limit = arguments.size("memory-limit")) {
    const std::int64_t devices = arguments.integer("virtual-gpus").value_or(1);
    memory.logical_devices.assign(static_cast<std::size_t>(devices), *limit);
  }
  return memory;
}

std::int64_t replica_count(const CheckSettings& settings) {
  return std::max<std::int64_t>(1, std::ssize(settings.tensorflow.logical_devices));
}

std::int64_t replica_batch(std::int64_t batch, const CheckSettings& settings) {
  const std::int64_t replicas = replica_count(settings);
  return (batch + replicas - 1) / replicas;
}

std::string describe_replicas(std::int64_t batch, const CheckSettings& settings) {
  if (replica_count(settings) == 1) return {};
  return fmt::format(", {} on each of {} virtual GPUs", replica_batch(batch, settings),
                     replica_count(settings));
}

Json tensorflow_json(const CheckSettings& settings) {
  if (settings.runtime != Runtime::tensorflow) return {};
  const TensorFlowMemory& memory = settings.tensorflow;
  const bool limited = !memory.logical_devices.empty();
  return Json::Object{
      {"memory_limit_bytes", limited ? Json(memory.logical_devices.front()) : Json()},
      {"memory_growth", memory.allow_growth},
      {"memory_fraction",
       memory.per_process_fraction > 0 ? Json(memory.per_process_fraction) : Json()},
      {"virtual_gpus", replica_count(settings)}};
}

}  // namespace stowage
