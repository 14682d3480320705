#include "cli/read_process_request.hpp"

#include <fmt/format.h>

#include <array>

#include "estimator/allocator/alloc_conf.hpp"

namespace stowage {

namespace {

Result<std::optional<ReleaseVersion>> read_version(const Arguments& arguments,
                                                   std::string_view option,
                                                   std::string_view example) {
  const auto text = arguments.text(option);
  if (!text) return std::optional<ReleaseVersion>();
  const auto version = parse_version(*text);
  if (version) return version;
  return failure(command_line_error(
      fmt::format("--{}: '{}' is not a version such as {}", option, *text, example)));
}

Result<SoftwareRequest> read_software(const Arguments& arguments, Runtime runtime) {
  const auto cuda = read_version(arguments, "cuda-version", "12.1");
  if (!cuda) return tl::unexpected(cuda.error());
  const auto pytorch = read_version(arguments, "pytorch-version", "2.8");
  if (!pytorch) return tl::unexpected(pytorch.error());
  if (*pytorch && runtime != Runtime::pytorch) {
    return failure(command_line_error(
        fmt::format("--pytorch-version is for --runtime pytorch, not for {}", to_string(runtime))));
  }
  SoftwareRequest software{.cuda = *cuda, .pytorch = *pytorch};
  if (const auto word = arguments.text("module-loading")) {
    const bool lazy = *word == to_string(ModuleLoading::lazy);
    software.loading = lazy ? ModuleLoading::lazy : ModuleLoading::eager;
  }
  return software;
}

Result<AllocatorSettings> read_allocator(const Arguments& arguments, Runtime runtime) {
  const auto text = arguments.text("alloc-conf");
  if (!text) return AllocatorSettings{};
  if (runtime != Runtime::pytorch) {
    return failure(command_line_error(fmt::format(
        "--alloc-conf is for PyTorch's allocator, not for --runtime {}", to_string(runtime))));
  }
  auto conf = parse_alloc_conf(*text, "<option --alloc-conf>");
  if (!conf) return tl::unexpected(std::move(conf.error()));
  return conf->settings;
}

Diagnostics tensorflow_mistakes(const Arguments& arguments, Runtime runtime) {
  Diagnostics mistakes;
  constexpr std::array<std::string_view, 4> options{"memory-limit", "memory-growth",
                                                    "memory-fraction", "virtual-gpus"};
  for (const std::string_view option : options) {
    if (runtime == Runtime::tensorflow || !arguments.given(option)) continue;
    mistakes.push_back(command_line_error(
        fmt::format("--{} is for --runtime tensorflow, not for {}", option, to_string(runtime))));
  }
  if (runtime == Runtime::tensorflow && arguments.given("gpus")) {
    mistakes.push_back(command_line_error("--gpus does not apply to --runtime tensorflow",
                                          "--virtual-gpus are logical devices of one card"));
  }
  if (arguments.given("memory-fraction") && arguments.given("memory-limit")) {
    mistakes.push_back(command_line_error(
        "--memory-limit and --memory-fraction both say how large the pool is; give one"));
  }
  if (arguments.given("virtual-gpus") && !arguments.given("memory-limit")) {
    mistakes.push_back(
        command_line_error("--virtual-gpus needs --memory-limit, the size of each of them"));
  }
  return mistakes;
}

Result<TensorFlowMemory> read_tensorflow(const Arguments& arguments, Runtime runtime) {
  if (Diagnostics mistakes = tensorflow_mistakes(arguments, runtime); !mistakes.empty()) {
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

}  // namespace

Result<ProcessRequest> read_process_request(const Arguments& arguments, Runtime fallback) {
  const auto name = arguments.text("runtime");
  // The option's table has checked the name.
  const Runtime runtime = name ? find_runtime(*name).value_or(fallback) : fallback;
  ProcessRequest process{.runtime = runtime,
                         .in_use = arguments.size("in-use").value_or(Bytes()),
                         .reserve = arguments.size("reserve").value_or(Bytes()),
                         .context = arguments.size("context")};
  auto software = read_software(arguments, runtime);
  if (!software) return tl::unexpected(std::move(software.error()));
  process.software = *std::move(software);
  auto allocator = read_allocator(arguments, runtime);
  if (!allocator) return tl::unexpected(std::move(allocator.error()));
  process.allocator = *std::move(allocator);
  auto tensorflow = read_tensorflow(arguments, runtime);
  if (!tensorflow) return tl::unexpected(std::move(tensorflow.error()));
  process.tensorflow = *std::move(tensorflow);
  return process;
}

}  // namespace stowage
