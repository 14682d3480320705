#include "gpu_probe/cudnn/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gpu_probe/cudnn/attention_graph.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"
#include "gpu_probe/cudnn/described_device.hpp"
#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/heuristics.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/operation_graph.hpp"
#include "gpu_probe/driver/driver_presence.hpp"

namespace stowage {
namespace {

constexpr std::size_t oldest_for_attention = 91600;

bool has_workspace(const std::vector<Engine>& engines, Bytes workspace) {
  return std::ranges::find(engines, workspace, &Engine::workspace) != engines.end();
}

// Keeps NVRTC loaded. cuDNN loads it for each plan that it compiles and unloads it with the plan,
// which takes as long as all the rest of an answer. It is looked for as cuDNN does: by cuDNN's
// RUNPATH, then by the loader's search.
void keep_nvrtc_loaded() {
  const SharedLibrary& cudnn = cudnn_forwarder();
  std::size_t (*cuda_version)() = nullptr;
  if (!cudnn.bind("cudnnGetCudartVersion", cuda_version)) return;
  const std::size_t major = cuda_version() / 1000;
  const std::string name = fmt::format("libnvrtc.so.{}", major);
  const std::string file = cudnn.path();
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  const std::string beside[] = {folder, folder + "../../cuda_nvrtc/lib/",
                                fmt::format("{}../../cu{}/lib/", folder, major), ""};
  for (const std::string& place : beside) {
    if (SharedLibrary(place + name)) return;
  }
}

class DescribedDeviceSession final : public CudnnSession {
 public:
  DescribedDeviceSession(const CudnnLibrary& library, const std::string& device)
      : library_(library), device_(described_device(library, device)) {}

  Result<WorkspaceAnswer> engines(const ConvolutionQuery& query) override {
    try {
      const CudnnDescriptor graph = convolution_graph(library_, query);
      WorkspaceAnswer answer{.engines = {}, .origin = WorkspaceOrigin::cudnn};
      for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
        // FALLBACK takes ten times as long, and only adds engines with little workspace.
        if (!query.settings.benchmark && has_workspace(answer.engines, 0_B)) break;
        for (const CudnnDescriptor& configuration :
             engine_configurations(library_, target(), graph, mode)) {
          add(configuration, query, answer);
        }
      }
      return answer;
    } catch (const LibraryFailure& error) {
      return failure(error.what());
    }
  }

  Result<WorkspaceAnswer> attention_engines(const AttentionQuery& query) override {
    if (library_.get_version() < oldest_for_attention) {
      return failure(fmt::format("cuDNN {} is not asked about attention; 9.16 and later are",
                                 library_.version()));
    }
    if (const auto driver = ensure_driver_loads(); !driver) return tl::unexpected(driver.error());
    try {
      const CudnnDescriptor graph = attention_graph(library_, query);
      const auto all = engine_configurations(library_, target(), graph, CUDNN_HEUR_MODE_A);
      if (all.empty()) return failure("cuDNN has no engine for a call of attention");
      const CudnnDescriptor& first = all.front();
      const CudnnDescriptor engine = engine_of(library_, first);
      return WorkspaceAnswer{
          .engines = {{engine_name(library_, first, engine), stated_workspace(first)}},
          .origin = WorkspaceOrigin::cudnn};
    } catch (const LibraryFailure& error) {
      return failure(error.what());
    }
  }

 private:
  static Bytes stated_workspace(const CudnnDescriptor& configuration) {
    return Bytes(configuration.get_integer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
  }

  // Adds the engine's plan to the answer. Building a plan takes most of the time, so only one
  // configuration of each workspace size is built, unless all are asked for.
  void add(const CudnnDescriptor& configuration, const ConvolutionQuery& query,
           WorkspaceAnswer& answer) const {
    const Bytes stated = stated_workspace(configuration);
    if (!query.settings.benchmark && has_workspace(answer.engines, stated)) return;
    const CudnnDescriptor engine = engine_of(library_, configuration);
    if (!is_allowed(engine.get_notes(), query)) return;
    const std::optional<Bytes> workspace = workspace_of_plan(configuration);
    if (!workspace) return;
    const Engine plan{engine_name(library_, configuration, engine), *workspace};
    if (query.settings.benchmark) answer.benchmark.push_back(plan);
    if (!has_workspace(answer.engines, *workspace)) answer.engines.push_back(plan);
  }

  // Nullopt: the plan cannot be built. Runtimes skip such an engine too.
  std::optional<Bytes> workspace_of_plan(const CudnnDescriptor& configuration) const {
    CudnnDescriptor plan = unfinished_plan(library_, target(), configuration);
    if (!plan.try_finalize()) return std::nullopt;
    return Bytes(workspace_of(plan));
  }

  [[nodiscard]] CudnnTarget target() const { return {.described = &device_}; }

  const CudnnLibrary& library_;
  CudnnDescriptor device_;
};

}  // namespace

Result<std::unique_ptr<CudnnSession>> open_cudnn_session(const std::string& device) {
  const auto library = cudnn_library();
  if (!library) return tl::unexpected(library.error());
  keep_nvrtc_loaded();
  try {
    return std::make_unique<DescribedDeviceSession>(**library, device);
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

std::string cudnn_sources_hash() { return STOWAGE_CUDNN_SOURCES_HASH; }

Result<std::string> cudnn_version() {
  return cudnn_library().map([](const CudnnLibrary* library) { return library->version(); });
}

}  // namespace stowage
