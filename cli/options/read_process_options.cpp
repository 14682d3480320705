#include "cli/options/read_process_options.hpp"

#include <fmt/format.h>

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

Result<SoftwareChoice> read_software(const Arguments& arguments) {
  const auto cuda = read_version(arguments, "cuda-version", "12.1");
  if (!cuda) return tl::unexpected(cuda.error());
  const auto pytorch = read_version(arguments, "pytorch-version", "2.8");
  if (!pytorch) return tl::unexpected(pytorch.error());
  SoftwareChoice software{.cuda = *cuda, .pytorch = *pytorch};
  if (const auto word = arguments.text("module-loading")) {
    const bool lazy = *word == to_string(ModuleLoading::lazy);
    software.loading = lazy ? ModuleLoading::lazy : ModuleLoading::eager;
  }
  return software;
}

Result<std::optional<AllocatorSettings>> read_allocator(const Arguments& arguments) {
  const auto text = arguments.text("alloc-conf");
  if (!text) return std::optional<AllocatorSettings>();
  auto conf = parse_alloc_conf(*text, "<option --alloc-conf>");
  if (!conf) return tl::unexpected(std::move(conf.error()));
  return std::optional(conf->settings);
}

Result<PoolChoice> read_pools(const Arguments& arguments) {
  PoolChoice pools{.limit = arguments.size("memory-limit"),
                   .fraction = arguments.number("memory-fraction"),
                   .virtual_gpus = arguments.integer("virtual-gpus"),
                   .growth = arguments.flag("memory-growth")};
  Diagnostics mistakes;
  if (pools.fraction && pools.limit) {
    mistakes.push_back(command_line_error(
        "--memory-limit and --memory-fraction both say how large the pool is; give one"));
  }
  if (pools.virtual_gpus && !pools.limit) {
    mistakes.push_back(
        command_line_error("--virtual-gpus needs --memory-limit, the size of each of them"));
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return pools;
}

}  // namespace

Result<ProcessChoice> read_process_options(const Arguments& arguments, Runtime usual) {
  ProcessChoice options{.usual_runtime = usual,
                        .in_use = arguments.size("in-use"),
                        .reserve = arguments.size("reserve").value_or(Bytes()),
                        .context = arguments.size("context")};
  // The option's table has checked the name.
  if (const auto name = arguments.text("runtime")) options.runtime = find_runtime(*name);
  auto software = read_software(arguments);
  if (!software) return tl::unexpected(std::move(software.error()));
  options.software = *std::move(software);
  auto allocator = read_allocator(arguments);
  if (!allocator) return tl::unexpected(std::move(allocator.error()));
  options.allocator = *std::move(allocator);
  auto pools = read_pools(arguments);
  if (!pools) return tl::unexpected(std::move(pools.error()));
  options.pools = *pools;
  if (const auto flags = arguments.text("theano-flags")) {
    auto theano = parse_theano_flags(*flags, "<option --theano-flags>");
    if (!theano) return tl::unexpected(std::move(theano.error()));
    options.theano = *theano;
  }
  return options;
}

}  // namespace stowage
