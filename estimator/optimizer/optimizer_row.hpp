// OptimizerRow: everything that the program knows about an optimizer. The table has one row per
// optimizer.
//
// Settings, state and temporaries are data, which `train:`, the command line, the docs, the
// lowering and the tests read. Rows describe the optimizers of PyTorch 2.15's torch.optim, timm
// 1.0, transformers 5 and bitsandbytes; each row names its source. To add an optimizer, write its
// row in torch_optimizers.cpp or other_optimizers.cpp, its step in update_rules.cpp, and measure it
// with tests/reference/optimizers.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/optimizer/optimizer_settings.hpp"

namespace stowage {

class UpdateScript;  // update_script.hpp

/// A parameter's tensor that the optimizer updates.
struct UpdatedTensor {
  std::vector<std::int64_t> shape;
  DataType type = DataType::float32;
};
[[nodiscard]] std::int64_t element_count(const UpdatedTensor& tensor);

/// A setting of optimizers: how it is written, and the member that holds it. setting_table() lists
/// them.
struct OptimizerSetting {
  AttributeSpec spec;  ///< real or boolean; the rows have the defaults
  std::variant<double OptimizerSettings::*, bool OptimizerSettings::*> member;
};
struct SettingDefault {
  std::string_view name;
  AttributeValue value;  ///< double or bool
};

enum class StateShape {
  parameter,  ///< the parameter's
  rows,       ///< without the last axis
  columns,    ///< without the last axis but one
  scalar,
  blocks,  ///< one value per block of 256 elements; the last block may be shorter
};
enum class StateType {
  parameter,    ///< that of the parameter, or of its master copy
  at_least_32,  ///< float32 for 16-bit parameters, else that of the parameter
  float32,
  uint8,
};
/// Where a state tensor is kept. `managed`: in unified memory, outside the runtime's allocator
/// (bitsandbytes' paged optimizers).
enum class StatePlace { device, host, host_unless_fused, managed };

/// A tensor that the optimizer keeps for a parameter from step to step.
struct StateTensor {
  std::string_view name;  ///< as the library names it: "exp_avg"
  StateShape shape = StateShape::parameter;
  StateType type = StateType::parameter;
  StatePlace place = StatePlace::device;
  bool bookkeeping = false;      ///< the library's counters, which our kernels do not have
  bool at_construction = false;  ///< allocated with the optimizer; else by its first step
  std::string_view when = "";    ///< the condition of `kept` in words; "": always
  bool (*kept)(const OptimizerSettings&, const UpdatedTensor&) = nullptr;  ///< null: always
};
/// A tensor on the device that all of an optimizer's parameters share.
struct SharedState {
  std::string_view name;
  std::int64_t elements = 0;
  bool (*kept)(const UpdatedTensor&) = nullptr;  ///< allocated if it is true for any parameter
};

/// Records the temporaries of a call of optimizer.step() in a script, in the order in which the
/// implementation makes and drops them. Null: the optimizer has no such implementation.
using UpdateRule = void (*)(UpdateScript&);

struct OptimizerRow {
  std::string_view name;
  std::string_view doc;     ///< one line
  std::string_view source;  ///< its implementation: "torch.optim.Adam"
  std::vector<SettingDefault> settings;
  std::vector<StateTensor> state;
  std::vector<SharedState> shared = {};
  UpdateRule for_loop = nullptr;
  UpdateRule foreach = nullptr;
  UpdateRule fused = nullptr;
  OptimizerImplementation usual = OptimizerImplementation::foreach;
  bool decouples = false;  ///< weight decay is never added to the gradient
  /// for_loop: each parameter's state is made just before its update.
  bool makes_state_before_update = false;
  bool groups_by_rank = false;   ///< foreach: separate calls for matrices and for vectors
  double flops_per_element = 0;  ///< operations of an update
  bool executable = true;        ///< the `stowage` kernels can run it
};

/// A name for a row under some settings: "nesterov".
struct OptimizerPreset {
  std::string_view name;
  std::string_view row;
  std::vector<SettingDefault> settings;
};

[[nodiscard]] const std::vector<OptimizerRow>& optimizer_table();
[[nodiscard]] const std::vector<OptimizerPreset>& optimizer_presets();
[[nodiscard]] const std::vector<OptimizerSetting>& setting_table();
[[nodiscard]] const OptimizerRow* find_optimizer(std::string_view name);
[[nodiscard]] const OptimizerSetting* find_setting(std::string_view name);

/// Settings with the row's name and defaults.
[[nodiscard]] OptimizerSettings default_settings(const OptimizerRow& row);
/// The settings of a row or a preset by name; none: there is no such name.
[[nodiscard]] std::optional<OptimizerSettings> named_optimizer(std::string_view name);
/// The names that named_optimizer() takes: rows, then presets.
[[nodiscard]] std::vector<std::string_view> optimizer_names();

[[nodiscard]] AttributeValue value_of(const OptimizerSettings& settings,
                                      const OptimizerSetting& setting);
void set_value(OptimizerSettings& settings, const OptimizerSetting& setting,
               const AttributeValue& value);

/// The implementations that the row has, its usual one first.
[[nodiscard]] std::vector<OptimizerImplementation> implementations(const OptimizerRow& row);
/// The implementation that runs: the one asked for, else the row's usual one. With master weights,
/// which foreach functions do not support, the fused one if there is one.
[[nodiscard]] OptimizerImplementation implementation_of(const OptimizerSettings& settings);

/// Why the settings are not possible, and what is possible instead.
struct OptimizerProblem {
  std::string message, hint;
};
[[nodiscard]] std::optional<OptimizerProblem> problem_of(const OptimizerSettings& settings);

/// "sgd with momentum", "adam with amsgrad, fused"
[[nodiscard]] std::string optimizer_text(const OptimizerSettings& settings);
/// A Markdown table with the settings, state, temporaries and implementations of each optimizer.
[[nodiscard]] std::string optimizer_reference();

}  // namespace stowage
