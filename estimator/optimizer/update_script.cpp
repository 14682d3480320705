#include "estimator/optimizer/update_script.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace stowage {

namespace {

/// The number of elements without the last `cut` axes; with `keep_last` the very last one is kept.
std::int64_t without_axes(const std::vector<std::int64_t>& shape, std::size_t cut, bool keep_last) {
  assert(shape.size() >= cut);
  std::int64_t count = keep_last ? shape.back() : 1;
  for (std::size_t i = 0; i + cut < shape.size(); ++i) count *= shape[i];
  return count;
}

bool is_matrix(const UpdatedTensor& tensor) { return tensor.shape.size() >= 2; }

// The groups that a multi-tensor implementation handles in one call: tensors of one type, in the
// order in which the types first appear (torch/optim/optimizer.py,
// _group_tensors_by_device_and_dtype).
std::vector<std::vector<std::size_t>> groups_of(std::span<const UpdatedTensor> tensors,
                                                bool by_rank) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto same = [&](const std::vector<std::size_t>& group) {
      const UpdatedTensor& first = tensors[group.front()];
      return first.type == tensors[i].type &&
             (!by_rank || is_matrix(first) == is_matrix(tensors[i]));
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  return groups;
}

}  // namespace

UpdateScript::UpdateScript(const OptimizerRow& row, const OptimizerSettings& settings,
                           std::span<const UpdatedTensor> tensors)
    : row_(row), settings_(settings), tensors_(tensors) {}

bool UpdateScript::has_matrices() const {
  return is_matrix(tensors_[calls_.calls.back().parameters.front()]);
}

bool UpdateScript::is_16_bit() const {
  return element_size(tensors_[calls_.calls.back().parameters.front()].type) == 2;
}

bool UpdateScript::decays_gradient() const {
  return settings_.weight_decay != 0 && !settings_.decoupled_weight_decay && !row_.decouples;
}

UpdateTemporary UpdateScript::sized(std::string_view variable, Size size, std::size_t parameter,
                                    const DataType* type) const {
  const UpdatedTensor& tensor = tensors_[parameter];
  std::int64_t elements = 1;
  switch (size) {
    case Size::parameter:
      elements = element_count(tensor);
      break;
    case Size::rows:
      elements = without_axes(tensor.shape, 1, false);
      break;
    case Size::columns:
      elements = without_axes(tensor.shape, 2, true);
      break;
    case Size::leading:
      elements = without_axes(tensor.shape, 2, false);
      break;
    case Size::each_one:
    case Size::one:
      break;
  }
  return {.variable = std::string(variable),
          .parameter = size == Size::one ? -1 : static_cast<std::int32_t>(parameter),
          .bytes = Bytes(elements) * element_size(type == nullptr ? tensor.type : *type)};
}

void UpdateScript::make_value(std::string_view variable, Size size, const DataType* type) {
  const std::vector<std::size_t>& parameters = calls_.calls.back().parameters;
  auto value = std::make_shared<Value>();
  value->reserve(size == Size::one ? 1 : parameters.size());
  for (const std::size_t parameter : parameters) {
    value->push_back(sized(variable, size, parameter, type));
    if (size == Size::one) break;
  }
  record_peak(value);
  variables_[std::string(variable)] = std::move(value);
}

void UpdateScript::make(std::string_view variable, Size size) {
  make_value(variable, size, nullptr);
}

void UpdateScript::make(std::string_view variable, Size size, DataType type) {
  make_value(variable, size, &type);
}

void UpdateScript::name(std::string_view variable, std::string_view existing) {
  const auto found = variables_.find(existing);
  if (found == variables_.end()) return drop(variable);
  variables_[std::string(variable)] = std::shared_ptr(found->second);
}

void UpdateScript::drop(std::string_view variable) {
  const auto found = variables_.find(variable);
  if (found != variables_.end()) variables_.erase(found);
}

// Sums the values that are alive, with `added`, which has no name yet, and records the largest sum.
void UpdateScript::record_peak(const std::shared_ptr<const Value>& added) {
  std::vector<std::shared_ptr<const Value>> held;
  for (const auto& [name, value] : variables_) {
    if (std::find(held.begin(), held.end(), value) == held.end()) held.push_back(value);
  }
  held.push_back(added);
  Bytes bytes;
  for (const auto& value : held) {
    for (const UpdateTemporary& temporary : *value) bytes += temporary.bytes;
  }
  if (bytes <= worst_) return;
  worst_ = bytes;
  held_at_worst_ = std::move(held);
}

void UpdateScript::begin_call(std::vector<std::size_t> parameters) {
  calls_.calls.push_back({.parameters = std::move(parameters), .temporaries = {}});
  worst_ = Bytes();
  held_at_worst_.clear();
}

void UpdateScript::end_call() {
  for (const auto& value : held_at_worst_) {
    const auto [place, fresh] = listed_.try_emplace(value, calls_.temporaries.size());
    if (fresh) {
      calls_.temporaries.insert(calls_.temporaries.end(), value->begin(), value->end());
    }
    for (std::size_t i = 0; i < value->size(); ++i) {
      calls_.calls.back().temporaries.push_back(place->second + i);
    }
  }
}

UpdateCalls update_calls(const OptimizerRow& row, const OptimizerSettings& settings,
                         std::span<const UpdatedTensor> tensors) {
  UpdateScript script(row, settings, tensors);
  const auto call = [&](UpdateRule rule, std::vector<std::size_t> parameters) {
    assert(rule != nullptr);
    script.begin_call(std::move(parameters));
    rule(script);
    script.end_call();
  };
  const OptimizerImplementation implementation = implementation_of(settings);
  if (implementation == OptimizerImplementation::for_loop) {
    for (std::size_t i = 0; i < tensors.size(); ++i) call(row.for_loop, {i});
  } else {
    const bool fused = implementation == OptimizerImplementation::fused;
    for (auto& group : groups_of(tensors, row.groups_by_rank && !fused)) {
      call(fused ? row.fused : row.foreach, std::move(group));
    }
  }
  return std::move(script.calls_);
}

}  // namespace stowage
