// StepQuestion: which step of a model is asked about, and the process that runs it.
//
// A question holds what its user said, and no more: what was left open stays empty, or is the
// setting's default. The room `subject` makes of it the model, the settings and the step.
#pragma once

#include <cstdint>
#include <optional>

#include "answers/question/model_question.hpp"
#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/tensorflow_memory.hpp"
#include "estimator/allocator/theano_memory.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

/// The software of the process; what is left open is the card's and the runtime's usual one.
struct SoftwareChoice {
  std::optional<ReleaseVersion> cuda, pytorch;
  std::optional<ModuleLoading> loading;
};

/// TensorFlow's pools.
struct PoolChoice {
  std::optional<Bytes> limit;
  std::optional<double> fraction;
  std::optional<std::int64_t> virtual_gpus;
  bool growth = false;
};

/// The process around the step. Whether its settings suit the runtime can be said only once that is
/// known, and a step's file may say it (subject/process_settings.hpp).
struct ProcessChoice {
  std::optional<Runtime> runtime;
  Runtime usual_runtime = default_runtime;  ///< where neither `runtime` nor a step's file says one
  std::optional<Bytes> in_use;
  Bytes reserve;
  std::optional<Bytes> context;
  SoftwareChoice software;
  std::optional<AllocatorSettings> allocator;
  PoolChoice pools;
  std::optional<TheanoMemory> theano;

  [[nodiscard]] Runtime runtime_or_usual() const { return runtime.value_or(usual_runtime); }
};

/// Which settings that have a default were given all the same: a step's file may not contradict
/// them.
struct ExplicitDefaults {
  bool gpus = false, zero = false, fsdp = false, offload = false, tf32 = false;
};

/// The card stands beside it.
struct StepQuestion {
  ModelQuestion model;
  StepWishes wishes;  ///< without the kernel set and the compute capability, which follow
  ProcessChoice process;
  ExplicitDefaults given;
  bool asks_cudnn = true;    ///< about workspaces; else they are the documented rule's
  bool keep_answers = true;  ///< cuDNN's, from run to run
};

}  // namespace stowage
