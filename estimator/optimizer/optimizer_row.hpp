// The optimizer table: one row an optimizer, and all that the program knows about it.
//
// Settings, state and step temporaries are data here; `train:`, the command line, the docs, the
// lowering and the tests read them. Rows describe PyTorch 2.15's torch.optim, timm 1.0's and
// transformers 5's own ones, and bitsandbytes; which, each row says. To add an optimizer, write its
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

/// A parameter as the optimizer sees it.
struct UpdatedTensor {
  std::vector<std::int64_t> shape;
  DataType type = DataType::float32;
};
[[nodiscard]] std::int64_t element_count(const UpdatedTensor& tensor);

/// A setting: how it is written, and where it is kept. Their list is setting_table().
struct OptimizerSetting {
  AttributeSpec spec;  ///< real or boolean; its default is each row's own
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
  blocks,  ///< one value for every 256 elements, the last block being shorter
};
enum class StateType {
  parameter,    ///< the parameter's (its master copy's, where it has one)
  at_least_32,  ///< float32 for 16-bit parameters, else the parameter's
  float32,
  uint8,
};
/// `managed`: in unified memory, outside the runtime's allocator (bitsandbytes' paged optimizers).
enum class StatePlace { device, host, host_unless_fused, managed };

/// A tensor that the optimizer keeps for a parameter from step to step.
struct StateTensor {
  std::string_view name;  ///< as the library names it: "exp_avg"
  StateShape shape = StateShape::parameter;
  StateType type = StateType::parameter;
  StatePlace place = StatePlace::device;
  bool bookkeeping = false;      ///< counters of the library's, which our own kernels do without
  bool at_construction = false;  ///< made with the optimizer; else by its first step
  std::string_view when = "";    ///< the condition in words; "": always
  bool (*kept)(const OptimizerSettings&, const UpdatedTensor&) = nullptr;  ///< null: always
};
/// A tensor on the device that all of an optimizer's parameters share.
struct SharedState {
  std::string_view name;
  std::int64_t elements = 0;
  bool (*kept)(const UpdatedTensor&) = nullptr;  ///< made if any parameter asks for it
};

/// The temporaries of a call of optimizer.step(), told to a script in the order in which the
/// implementation makes and drops them. Null: the optimizer has no such implementation.
using UpdateRule = void (*)(UpdateScript&);

struct OptimizerRow {
  std::string_view name;
  std::string_view doc;     ///< one line
  std::string_view source;  ///< whose it is: "torch.optim.Adam"
  std::vector<SettingDefault> settings;
  std::vector<StateTensor> state;
  std::vector<SharedState> shared = {};
  UpdateRule for_loop = nullptr;
  UpdateRule foreach = nullptr;
  UpdateRule fused = nullptr;
  OptimizerImplementation usual = OptimizerImplementation::foreach;
  bool decouples = false;        ///< weight decay never goes by way of the gradient
  bool state_in_turn = false;    ///< the loop makes each parameter's state when it comes to it
  bool groups_by_rank = false;   ///< foreach: matrices and vectors in calls of their own
  double flops_per_element = 0;  ///< of an update
  bool executable = true;        ///< by the `stowage` kernels
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

/// The row's name and defaults.
[[nodiscard]] OptimizerSettings default_settings(const OptimizerRow& row);
/// Of a row's or a preset's name; none: there is no such name.
[[nodiscard]] std::optional<OptimizerSettings> named_optimizer(std::string_view name);
/// What named_optimizer takes: rows, then presets.
[[nodiscard]] std::vector<std::string_view> optimizer_names();

[[nodiscard]] AttributeValue value_of(const OptimizerSettings& settings,
                                      const OptimizerSetting& setting);
void set_value(OptimizerSettings& settings, const OptimizerSetting& setting,
               const AttributeValue& value);

/// Those that the row has, the usual one first.
[[nodiscard]] std::vector<OptimizerImplementation> implementations(const OptimizerRow& row);
/// What runs: the one asked for, else the row's usual one; with master weights, which no list
/// function reads, the fused one where there is one.
[[nodiscard]] OptimizerImplementation implementation_of(const OptimizerSettings& settings);

/// Why there is no such optimizer, and what there is instead; none: all is well.
struct OptimizerProblem {
  std::string message, hint;
};
[[nodiscard]] std::optional<OptimizerProblem> problem_of(const OptimizerSettings& settings);

/// "sgd with momentum", "adam with amsgrad, fused"
[[nodiscard]] std::string optimizer_text(const OptimizerSettings& settings);
/// Markdown: a row an optimizer, with its settings, state, temporaries and implementations.
[[nodiscard]] std::string optimizer_reference();

}  // namespace stowage
