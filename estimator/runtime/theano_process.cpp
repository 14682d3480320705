// A process that trains or infers with Keras over Theano.
//
// In this order the card is taken: the CUDA context, cuDNN's and cuBLAS's handles and kernels, when
// the device is made (the new backend makes the handles before and after it preallocates, which
// decides nothing but who complains), the pool's preallocated share, the parameters and the
// optimizer's variables, then function by function.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "estimator/allocator/theano_memory.hpp"
#include "estimator/memory/partition.hpp"
#include "estimator/runtime/process_walk.hpp"
#include "estimator/runtime/runtime_process.hpp"

namespace stowage {

namespace {

/// Theano's pool as process_walk.hpp wants one. The libraries are on the card already.
class TheanoPool {
 public:
  TheanoPool(const SizedStep& step, BestFitAllocator& allocator)
      : step_(step), allocator_(allocator) {}

  [[nodiscard]] auto allocate(Bytes bytes, NodeId) { return allocator_.allocate(bytes); }
  void free(BlockId id) { allocator_.free(id); }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return allocator_.statistics(); }
  void reset_peaks() { allocator_.reset_peaks(); }
  [[nodiscard]] static std::optional<MissingLibrary> library_missing_at(NodeId) { return {}; }
  template <typename TryBlock>
  [[nodiscard]] const std::vector<Engine>& engines(std::size_t node, TryBlock) {
    return step_.engines[node].list();
  }

 private:
  const SizedStep& step_;
  BestFitAllocator& allocator_;
};

/// On a card where the process finds `total`.
ProcessReplay replay_on(const StepOnCard& on_card, Bytes total) {
  const CheckSettings& settings = on_card.settings;
  const Bytes others = settings.in_use + settings.reserve;
  DeviceMemory device(total, std::min(others, total));
  ProcessReplay failed;
  const Bytes outside = outside_allocator(*on_card.step.graph, on_card.card, settings);
  if (!device.take(device.add_holder("context and libraries"), outside)) {
    failed.failure = {.library = MissingLibrary{{"CUDA", outside, {}}, device.free()}};
    return failed;
  }
  const BestFitSettings rules = theano_pool(settings.theano, on_card.card.cuda_total);
  BestFitAllocator allocator(rules, device, "Theano");
  if (!allocator.preallocate()) {
    failed.failure = {.library = MissingLibrary{
                          {std::string(theano_pool_name(settings.theano)), rules.preallocated, {}},
                          device.free()}};
    return failed;
  }
  const std::vector<StorageUse> uses = storage_uses(
      on_card.step, {.buffers = on_card.buffers, .with_workspaces = false}, on_card.touches);
  TheanoPool pool(on_card.step, allocator);
  ProcessWalk walk(on_card.step, on_card.buffers, uses, uses, pool);
  if (walk.load()) walk.run_steps();
  return std::move(walk).report();
}

std::string message_of(const StepGraph& graph, const TheanoMemory& memory,
                       const ProcessReplay::Failure& failure) {
  if (failure.library) {
    const MissingLibrary& missing = *failure.library;
    return fmt::format("{} wants {}, and {} are left", missing.library.name,
                       format_bytes(missing.library.bytes), format_bytes(missing.free));
  }
  const std::string text =
      memory.backend == TheanoBackend::cuda
          ? fmt::format("Error allocating {} bytes of device memory (out of memory)",
                        failure.out_of_memory.tried.count())
          : std::string("GpuArrayException: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  if (!failure.node.valid()) return fmt::format("before the first step: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

RuntimeRun run_theano(const StepOnCard& on_card) {
  RuntimeRun result;
  ProcessReplay run = replay_on(on_card, on_card.card.cuda_total);
  if (run.failure) {
    const StepGraph& graph = *on_card.step.graph;
    result.failure = AllocationFailure{
        .at = *run.failure,
        .node = run.failure->node.valid() ? graph.node(run.failure->node).name : "",
        .message = message_of(graph, on_card.settings.theano, *run.failure)};
    run = replay_on(on_card, unlimited_memory);
  }
  result.replicas.push_back(std::move(run));
  return result;
}

bool completes_in_theano(const StepOnCard& on_card) {
  return replay_on(on_card, on_card.card.cuda_total).completed();
}

std::vector<RuntimeBuffer> theano_parallel_buffers(const StepGraph& graph, const Card& /*card*/,
                                                   const CheckSettings& /*settings*/) {
  return parallel_buffers(graph);
}

std::vector<RuntimeRow> theano_rows(const RuntimeRun& run, const CheckSettings& settings,
                                    Bytes tensor_bytes) {
  return {{"rest of the pool", run.reserved().most - tensor_bytes,
           fmt::format("{}, simulated for {} steps", theano_pool_name(settings.theano),
                       run.process().steps)}};
}

}  // namespace

// Theano compiles its kernels as functions need them: it has none of its own to load.
RuntimeProcess theano_process() {
  return {.runtime = Runtime::theano,
          .run = run_theano,
          .completes = completes_in_theano,
          .buffers = theano_parallel_buffers,
          .allocator_rows = theano_rows};
}

}  // namespace stowage
