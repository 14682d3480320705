// UpdateScript: simulates the variables of optimizer.step() to find its temporaries at the moment
// of its peak, call by call.
//
// An UpdateRule records which variables the implementation's source binds and deletes, in order.
// The script gives them sizes and finds, for every call (a parameter in the for-loop, a group of
// parameters in foreach and fused), the moment at which the most bytes are alive. The values alive
// then are the call's temporaries. As in Python, a new value is made before the old one of the same
// name is released, variables outlive an iteration of the loop, and a value lives until its last
// name is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

struct UpdateTemporary {
  std::string variable;
  std::int32_t parameter = -1;  ///< index into the updated tensors; -1: belongs to the whole call
  Bytes bytes;
};
struct UpdateCall {
  std::vector<std::size_t> parameters;   ///< indices into the updated tensors
  std::vector<std::size_t> temporaries;  ///< indices into UpdateCalls::temporaries
};
struct UpdateCalls {
  std::vector<UpdateTemporary> temporaries;  ///< those alive at the peak of some call
  std::vector<UpdateCall> calls;
};

/// The calls of one optimizer.step() when the state already exists. Precondition: the row has the
/// implementation that the settings ask for.
[[nodiscard]] UpdateCalls update_calls(const OptimizerRow& row, const OptimizerSettings& settings,
                                       std::span<const UpdatedTensor> tensors);

class UpdateScript {
 public:
  enum class Size {
    parameter,
    rows,      ///< without the last axis
    columns,   ///< without the last axis but one
    leading,   ///< without the last two
    each_one,  ///< a value for each parameter
    one,       ///< a value for the call
  };

  UpdateScript(const OptimizerRow& row, const OptimizerSettings& settings,
               std::span<const UpdatedTensor> tensors);

  [[nodiscard]] const OptimizerSettings& settings() const { return settings_; }
  [[nodiscard]] bool first_call() const { return calls_.calls.size() == 1; }
  [[nodiscard]] bool has_matrices() const;     ///< the call's tensors have at least two axes
  [[nodiscard]] bool is_16_bit() const;        ///< the call's tensors are 16-bit
  [[nodiscard]] bool decays_gradient() const;  ///< L2: weight decay is added to the gradient

  /// variable = a new value
  void make(std::string_view variable, Size size = Size::parameter);
  void make(std::string_view variable, Size size, DataType type);
  /// variable = existing
  void name(std::string_view variable, std::string_view existing);
  /// del variable; does nothing if it is not bound
  void drop(std::string_view variable);

 private:
  friend UpdateCalls update_calls(const OptimizerRow& row, const OptimizerSettings& settings,
                                  std::span<const UpdatedTensor> tensors);
  using Value = std::vector<UpdateTemporary>;

  void begin_call(std::vector<std::size_t> parameters);
  void end_call();
  [[nodiscard]] UpdateTemporary sized(std::string_view variable, Size size, std::size_t parameter,
                                      const DataType* type) const;
  void make_value(std::string_view variable, Size size, const DataType* type);
  void record_peak(const std::shared_ptr<const Value>& added);

  const OptimizerRow& row_;
  const OptimizerSettings& settings_;
  std::span<const UpdatedTensor> tensors_;
  std::map<std::string, std::shared_ptr<const Value>, std::less<>> variables_;
  Bytes worst_;
  std::vector<std::shared_ptr<const Value>> held_at_worst_;
  std::map<std::shared_ptr<const Value>, std::size_t> listed_;  // index in calls_.temporaries
  UpdateCalls calls_;
};

// update_rules.cpp: as the sources of torch.optim, timm.optim and transformers have them.
void no_temporaries(UpdateScript& script);
void sgd_for_loop(UpdateScript& script);
void sgd_foreach(UpdateScript& script);
void adam_for_loop(UpdateScript& script);
void adam_foreach(UpdateScript& script);
void adagrad_for_loop(UpdateScript& script);
void adagrad_foreach(UpdateScript& script);
void rmsprop_for_loop(UpdateScript& script);
void rmsprop_foreach(UpdateScript& script);
void adadelta_for_loop(UpdateScript& script);
void adadelta_foreach(UpdateScript& script);
void adamax_for_loop(UpdateScript& script);
void adamax_foreach(UpdateScript& script);
void nadam_for_loop(UpdateScript& script);
void nadam_foreach(UpdateScript& script);
void radam_for_loop(UpdateScript& script);
void radam_foreach(UpdateScript& script);
void adafactor_for_loop(UpdateScript& script);
void adafactor_foreach(UpdateScript& script);
void lion_for_loop(UpdateScript& script);
void lion_foreach(UpdateScript& script);
void lamb_for_loop(UpdateScript& script);
void lamb_foreach(UpdateScript& script);
void transformers_adafactor_for_loop(UpdateScript& script);

}  // namespace stowage
