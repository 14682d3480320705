#include "estimator/runtime/process_overhead.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "estimator/card/kernel_code.hpp"
#include "estimator/runtime/library_calls.hpp"
#include "estimator/runtime/runtime_process.hpp"

namespace stowage {

namespace {

// What each library loads on first use where modules are loaded lazily. Public reports put the
// growth of the first iterations at 50 to 200 MiB for both together (facts gathered in
// docs/accounting.md); the middle of that, until a calibration measures it.
constexpr Bytes lazy_library{64 << 20};
constexpr std::string_view lazy_library_source =
    "50 to 200 MiB for cuBLAS and cuDNN together in public reports";

// What a communicator took of each of two A100s, buffers and kernels together: 1.28 GiB were left
// after the rest was gone (Bekman, "Machine Learning Engineering", training/performance). By NCCL's
// source a connection has 9,633,792 bytes a channel; how many there are depends on the machine.
constexpr Bytes nccl_bytes{1311 << 20};

// What is uncertain (docs/gpus.md): the bases of the contexts that were measured lie between 133
// and 213 MiB, 265 on the largest cards; the libraries take up to 200 MiB instead of 128; an eager
// process took 942 MiB where the rule says 844; NCCL's channels depend on the machine; the driver
// keeps 231 to 573 MiB, of which 350 is taken.
constexpr Bytes uncertain_context{80 << 20};
constexpr Bytes uncertain_lazy_library{36 << 20};
constexpr Bytes uncertain_nccl{328 << 20};
constexpr Bytes uncertain_total{223 << 20};
constexpr std::int64_t uncertain_code_percent = 12;

enum class Library { cublas, cudnn };

bool is_eager(const CheckSettings& settings) {
  return settings.stack.loading == ModuleLoading::eager;
}

/// Whether `a` tells more than `b` about a process with the CUDA that is asked for.
bool is_preferred(const ProcessMeasurement& a, const ProcessMeasurement& b,
                  const ReleaseVersion& asked) {
  if (a.calibrated != b.calibrated) return a.calibrated;
  const bool a_is_older = a.stack.cuda <= asked;
  const bool b_is_older = b.stack.cuda <= asked;
  if (a_is_older != b_is_older) return a_is_older;
  return a_is_older ? a.stack.cuda > b.stack.cuda : a.stack.cuda < b.stack.cuda;
}

/// The card's preferred measurement of `runtime` for which `has` is true; null: there is none.
template <typename Has>
const ProcessMeasurement* measured_of(Runtime runtime, const Card& card,
                                      const CheckSettings& settings, Has has) {
  const SoftwareStack& stack = settings.stack;
  const ProcessMeasurement* found = nullptr;
  for (const ProcessMeasurement& row : card.measurements) {
    if (row.runtime != runtime || row.stack.loading != stack.loading || !has(row)) continue;
    // The kernels of another release are others.
    const bool counts = row.calibrated || !is_eager(settings) || row.stack.cuda == stack.cuda;
    if (counts && (found == nullptr || is_preferred(row, *found, stack.cuda))) found = &row;
  }
  return found;
}

// Loaded lazily a framework's own kernels weigh little, so that what our calibration saw of the
// context and the libraries stands in where the runtime itself was not measured.
template <typename Has>
const ProcessMeasurement* measured(const Card& card, const CheckSettings& settings, Has has) {
  if (const auto* own = measured_of(settings.runtime, card, settings, has)) return own;
  if (is_eager(settings)) return nullptr;
  return measured_of(executed_runtime, card, settings,
                     [&](const ProcessMeasurement& row) { return row.calibrated && has(row); });
}

std::string source_of(const KernelCode& code) {
  return fmt::format("{}'s kernels for sm_{}, loaded at once", code.release, code.architecture);
}

bool has_libraries_linked_in(const CheckSettings& settings) {
  return settings.stack.cuda < process_of(settings.runtime).libraries_apart_since;
}

RuntimeRow eager_context(const Card& card, const CheckSettings& settings) {
  RuntimeRow row{"CUDA context", card.context, card.context_source};
  const std::optional<KernelLibrary> own = process_of(settings.runtime).own_kernels;
  if (!own) return row;
  const KernelCode code = kernel_code(*own, settings.stack.cuda, card.compute_capability);
  row.bytes += code.bytes;
  row.source = fmt::format("{} ({}) and {}", format_bytes(card.context), card.context_source,
                           source_of(code));
  return row;
}

RuntimeRow eager_library(Library library, bool training, const Card& card,
                         const CheckSettings& settings) {
  const auto code_of = [&](KernelLibrary kernels) {
    return kernel_code(kernels, settings.stack.cuda, card.compute_capability);
  };
  if (has_libraries_linked_in(settings)) {
    return {"", Bytes(), fmt::format("within {}'s own kernels", traits(settings.runtime).title)};
  }
  KernelCode code =
      code_of(library == Library::cublas ? KernelLibrary::cublas : KernelLibrary::cudnn_inference);
  if (library == Library::cudnn && training) {
    code.bytes += code_of(KernelLibrary::cudnn_training).bytes;
  }
  return {"", code.bytes, source_of(code)};
}

Bytes uncertainty_of_code(Bytes code) { return Bytes(code.count() / 100 * uncertain_code_percent); }

bool is_by_rule(const Card& card, std::string_view key) {
  return std::ranges::find(card.by_rule, key) != card.by_rule.end();
}

bool has_context(const ProcessMeasurement& row) { return row.context.has_value(); }

Bytes context_uncertainty(const Card& card, const CheckSettings& settings) {
  if (settings.context || measured(card, settings, has_context) != nullptr) return {};
  Bytes bytes = is_by_rule(card, "context") ? uncertain_context : Bytes();
  if (is_eager(settings)) {
    bytes += uncertainty_of_code(eager_context(card, settings).bytes - card.context);
  }
  return bytes;
}

auto measures(Library library) {
  const auto field =
      library == Library::cublas ? &ProcessMeasurement::cublas : &ProcessMeasurement::cudnn;
  return [field](const ProcessMeasurement& row) { return (row.*field).has_value(); };
}

Bytes library_uncertainty(Library library, bool training, const Card& card,
                          const CheckSettings& settings) {
  if (measured(card, settings, measures(library)) != nullptr) return {};
  if (!is_eager(settings)) return uncertain_lazy_library;
  return uncertainty_of_code(eager_library(library, training, card, settings).bytes);
}

RuntimeRow library_row(Library library, const StepGraph& graph, const Card& card,
                       const CheckSettings& settings) {
  const auto field =
      library == Library::cublas ? &ProcessMeasurement::cublas : &ProcessMeasurement::cudnn;
  RuntimeRow row{"", lazy_library, std::string(lazy_library_source)};
  if (const auto* found = measured(card, settings, measures(library))) {
    row = {"", *(found->*field), found->source};
  } else if (is_eager(settings)) {
    row = eager_library(library, graph.settings.mode == Mode::train, card, settings);
  }
  row.name = library == Library::cublas ? "cuBLAS" : "cuDNN";
  return row;
}

bool counts_nccl(const StepGraph& graph, const CheckSettings& settings) {
  return graph.settings.parallel.is_parallel() && process_of(settings.runtime).has_nccl_figure;
}

struct LibraryUse {
  RuntimeRow row;
  NodeId first_use;
};

std::vector<LibraryUse> library_uses(const StepGraph& graph, const Card& card,
                                     const CheckSettings& settings) {
  std::vector<LibraryUse> uses;
  if (!traits(settings.runtime).has_process) return uses;
  const auto add = [&](Library library, auto calls) {
    const auto first = std::ranges::find_if(graph.nodes, calls);
    if (first == graph.nodes.end()) return;
    const auto node = static_cast<std::size_t>(first - graph.nodes.begin());
    uses.push_back({library_row(library, graph, card, settings), NodeId::of(node)});
  };
  add(Library::cublas, calls_cublas);
  add(Library::cudnn, calls_cudnn);
  return uses;
}

}  // namespace

RuntimeRow context_row(const Card& card, const CheckSettings& settings) {
  RuntimeRow row{"CUDA context", card.context, card.context_source};
  if (!traits(settings.runtime).has_process) return {row.name, Bytes(), ""};
  if (settings.context) return {row.name, *settings.context, "given"};
  if (const auto* found = measured(card, settings, has_context)) {
    return {row.name, *found->context, found->source};
  }
  return is_eager(settings) ? eager_context(card, settings) : row;
}

Bytes context_bytes(const Card& card, const CheckSettings& settings) {
  return context_row(card, settings).bytes;
}

std::vector<LibraryLoad> library_loads(const StepGraph& graph, const Card& card,
                                       const CheckSettings& settings) {
  std::vector<LibraryLoad> loads;
  for (const LibraryUse& use : library_uses(graph, card, settings)) {
    loads.push_back({use.row.name, use.row.bytes, use.first_use});
  }
  return loads;
}

std::vector<RuntimeRow> library_rows(const StepGraph& graph, const Card& card,
                                     const CheckSettings& settings) {
  std::vector<RuntimeRow> rows;
  for (const LibraryUse& use : library_uses(graph, card, settings)) {
    rows.push_back({use.row.name + " kernels", use.row.bytes, use.row.source});
  }
  if (counts_nccl(graph, settings)) {
    rows.push_back({"NCCL", nccl_bytes, "1.28 GiB on each of two A100s in a public report"});
  }
  return rows;
}

Bytes outside_allocator(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  Bytes bytes = context_bytes(card, settings);
  for (const RuntimeRow& row : library_rows(graph, card, settings)) bytes += row.bytes;
  return bytes;
}

Bytes uncertainty_outside_allocator(const StepGraph& graph, const Card& card,
                                    const CheckSettings& settings) {
  if (!traits(settings.runtime).has_process) return {};
  Bytes bytes = context_uncertainty(card, settings);
  const bool training = graph.settings.mode == Mode::train;
  if (std::ranges::any_of(graph.nodes, calls_cublas)) {
    bytes += library_uncertainty(Library::cublas, training, card, settings);
  }
  if (std::ranges::any_of(graph.nodes, calls_cudnn)) {
    bytes += library_uncertainty(Library::cudnn, training, card, settings);
  }
  if (counts_nccl(graph, settings)) bytes += uncertain_nccl;
  if (is_by_rule(card, "cuda_total")) bytes += uncertain_total;
  return bytes;
}

Bytes allocator_limit(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  const Bytes left = card.cuda_total - settings.in_use - settings.reserve -
                     outside_allocator(graph, card, settings);
  const auto limit = process_of(settings.runtime).limit;
  return limit == nullptr ? left : limit(left, graph, card, settings);
}

}  // namespace stowage
