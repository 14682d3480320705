// Requests: what a command is asked, as typed values. Past read_request.hpp no command knows the
// names of options.
//
// A request holds what its user said, and no more: what was left open stays empty (or is the
// option's default). requested_step.hpp makes of it the model, the card and the
// step that it means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/advice.hpp"
#include "cli/options/config_directory.hpp"
#include "cli/output/report.hpp"
#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/tensorflow_memory.hpp"
#include "estimator/allocator/theano_memory.hpp"
#include "estimator/base/batch.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/model/model_options.hpp"
#include "estimator/serving/serving_settings.hpp"
#include "estimator/step/choose_step.hpp"
#include "planner/problem/levers.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// MODEL, and what is said beside its description.
struct ModelRequest {
  std::string source;  ///< as typed: a file, "-" for stdin, or a name from the catalogue
  ModelOptions options;
  ConfigDirectory configs;
  std::optional<std::string> loss = {};  ///< of a file of another format: a catalogue row
  bool allow_unknown = false;            ///< as above: operators of no row are counted
};

/// `--gpu here`: the card of this machine.
inline constexpr std::string_view present_name = "here";

/// At least one of `name` and `cuda_total` is given.
struct CardRequest {
  std::string name;  ///< however it is spelt; empty: a generic card of `cuda_total`; present_name
  std::optional<Bytes> cuda_total;
  std::optional<double> compute_capability;  ///< of a generic card
  std::string calibration;                   ///< a file; empty: none
  ConfigDirectory configs;
};

struct SoftwareRequest {
  std::optional<ReleaseVersion> cuda, pytorch;
  std::optional<ModuleLoading> loading;
};

/// TensorFlow's pools, as asked for.
struct PoolOptions {
  std::optional<Bytes> limit;
  std::optional<double> fraction;
  std::optional<std::int64_t> virtual_gpus;
  bool growth = false;
};

/// The process around the step, as asked for: whether its options suit the runtime can be said
/// only once that is known, and a step's file may say it (requested_settings).
struct ProcessOptions {
  std::optional<Runtime> runtime;
  Runtime usual_runtime = Runtime::pytorch;
  std::optional<Bytes> in_use;
  Bytes reserve;
  std::optional<Bytes> context;
  SoftwareRequest software;
  std::optional<AllocatorSettings> allocator;
  PoolOptions pools;
  std::optional<TheanoMemory> theano;
};

/// Which options that have a usual value were given all the same: a step file may not contradict
/// them.
struct GivenUsuals {
  bool gpus = false, zero = false, fsdp = false, offload = false, tf32 = false;
};

/// A step of a model and the process that runs it; the card stands beside it.
struct StepRequest {
  ModelRequest model;
  StepWishes wishes;  ///< without the kernel set and the compute capability, which follow
  ProcessOptions process;
  GivenUsuals given;
  bool keep_answers = true;  ///< cuDNN's, from run to run
  TypedWords typed;          ///< to be repeated in advice
};

struct CheckRequest {
  StepRequest step;
  CardRequest card;
  std::optional<std::int64_t> batch;  ///< absent: a step file's own, or 1
  std::optional<std::int64_t> eval_batch;
  std::optional<ServingSettings> serving;  ///< an inference with a cache of keys and values
  bool rule_of_thumb = false;
  bool verbose = false;
};

/// What `batch` looks for in place of the batch.
enum class LargestOf { users, context_length, seq };

struct BatchRequest {
  StepRequest step;
  CardRequest card;
  std::optional<LargestOf> of;             ///< none: the batch
  std::optional<ServingSettings> serving;  ///< with users and context_length
  std::optional<std::int64_t> batch;       ///< with seq
  std::optional<Bytes> margin;             ///< that the recommended batch leaves
  std::optional<WholeBatch> global_batch;
};

struct LowerRequest {
  ModelRequest model;
  std::optional<CardRequest> card;  ///< absent: the compute capability of a generic one
  StepWishes wishes;                ///< as StepRequest's
  Runtime runtime = Runtime::pytorch;
  std::optional<std::int64_t> batch;
  std::string output;  ///< a file, "-" for stdout; empty: stdout
};

struct PlanningRequest {
  StepRequest step;
  std::optional<CardRequest> card;           ///< absent: `budget` is given
  std::string calibration;                   ///< a file, also without a card; empty: none
  std::optional<double> compute_capability;  ///< of the generic card that there is without one
  std::optional<WholeBatch> batch;           ///< absent: a step file's own, or 1
  std::optional<Bytes> budget;
  std::optional<double> budget_share;  ///< of the least arena with everything on the GPU
  std::string host;                    ///< a file; empty: this machine
  std::optional<Bytes> host_memory;    ///< in place of the host's own; half of it may be pinned
  std::string choice;                  ///< a proposal's name; empty: the best that changes nothing
  Levers levers;
  std::string frontier;     ///< a file; empty: none
  bool least_pcie = false;  ///< the best moves the fewest bytes; else it takes the least time
  double time_limit_seconds = 10;
  PinRequest pins;  ///< the command line's; a description may have more
  bool log_placement = false;
  bool run_on_host = false;
  std::string output;  ///< a file, "-" for stdout; empty: nowhere
};

enum class RunOn { host, cuda };

struct ValidateRequest {
  std::vector<std::string> plans;  ///< files, one of which may be "-" for stdin; never empty
  bool keep_answers = true;
  bool compare_source = false;  ///< with what the description in the plan lowers to now
  bool run = true;
  RunOn on = RunOn::host;
  std::int64_t steps = 1;   ///< how many are run
  std::string calibration;  ///< a file for what the run measures; empty: none
  bool insists = false;     ///< the run was asked for by name, and is no mere default
};

struct ExplainRequest {
  std::string plan;  ///< a file, or "-" for stdin
  std::string name;  ///< of a kernel, a storage, a layer or a scope
};

/// Two plans: files; one of them may be "-" for stdin.
struct DiffRequest {
  std::string before, after;
  bool verbose = false;
};

struct ExportRequest {
  ModelRequest model;  ///< its source may also be a plan's file
  std::string output;  ///< a file, "-" for stdout; empty: stdout
};

struct SummaryRequest {
  ModelRequest model;
  std::optional<std::int64_t> batch;
  std::optional<TensorLayout> layout;
  bool costs = false;  ///< also what each layer computes and keeps
};

struct ProbeRequest {
  ConfigDirectory configs;
  bool calibrate = false;
  int device = 0;
  bool names_device = false;  ///< a GPU is wanted, and not the host alone
  std::string output;         ///< of the calibration: a file; empty: stdout
};

/// models and gpus.
struct CatalogueRequest {
  ConfigDirectory configs;
  std::string filter;  ///< a part of the names that are wanted; empty: all
  TypedWords typed;    ///< to be repeated in advice
};

/// ops and help.
struct TopicRequest {
  std::string topic;  ///< empty: all
  Format format = Format::table;
};

}  // namespace stowage
