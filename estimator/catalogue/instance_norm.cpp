// instance_norm: normalization of each channel of each sample.
//
// PyTorch runs it as a batch norm over [1, batch * channels, ...] with weight, bias and running
// statistics repeated for each sample, and then takes the mean of those statistics over the batch
// (at::instance_norm, ATen/native/Normalization.cpp). Our executor runs it as a group norm of one
// channel a group, and updates the running statistics with what that saved.
#include <fmt/format.h>

#include <vector>

#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t instance_norm_flops = 8;

tl::expected<Inference, InferenceError> infer_instance_norm(const Attributes& attributes,
                                                            std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  if (x.shape.size() < 3) {
    return refuse(fmt::format("wants [batch, channels, ...] with at least one more axis, but its "
                              "input has shape {}",
                              to_string(x.shape)),
                  {}, 0);
  }
  Inference result;
  result.outputs = {x};
  add_affine_parameters(result, attributes, {x.shape[1]}, x.type);
  if (attributes.boolean("track_running_stats")) {
    add_running_statistics(result, {x.shape[1]}, x.type);
  }
  result.flops = element_count(x.shape) * Affine(instance_norm_flops);
  return result;
}

bool has_scale_and_shift(const OperatorLowering& lowering) {
  return lowering.attributes().boolean("affine");
}
bool tracks(const OperatorLowering& lowering) {
  return lowering.attributes().boolean("track_running_stats");
}
/// running_mean (0) or running_var (1).
TensorView running(const OperatorLowering& lowering, int i) {
  return lowering.parameter((has_scale_and_shift(lowering) ? 2 : 0) + i);
}
Affine flops_of(const TensorView& x, std::int64_t times = 1) {
  return element_count(x.shape) * Affine(times * instance_norm_flops);
}

// PyTorch.

/// [1, batch * channels, ...] of [batch, channels, ...].
TensorView as_one_sample(const TensorView& x) {
  Shape shape{1, x.shape[0] * x.shape[1]};
  shape.insert(shape.end(), x.shape.begin() + 2, x.shape.end());
  return *reshaped(x, shape);
}

TensorView repeated_per_sample(OperatorLowering& lowering, const TensorView& parameter,
                               const std::string& name) {
  const Shape samples{lowering.input().shape[0] * parameter.shape[0]};
  const TensorView copy =
      lowering.new_tensor(name, samples, parameter.type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::expand, name, {parameter}, {copy});
  return copy;
}

void average_running_statistics(OperatorLowering& lowering, const std::vector<TensorView>& repeats,
                                const std::vector<TensorView>& statistics) {
  std::vector<StorageId> holds;
  for (const TensorView& repeat : repeats) holds.push_back(repeat.storage);
  holds.push_back(lowering.input().storage);
  for (int i = 0; i < 2; ++i) {
    const TensorView kept = running(lowering, i);
    const TensorView& of = statistics[static_cast<std::size_t>(i)];
    const TensorView mean =
        lowering.new_tensor("running.mean", kept.shape, of.type, StorageClass::activation);
    lowering.emit(Kernel::reduce, "running.mean", {of}, {mean});
    const TensorView converted = lowering.cast(mean, kept.type, "running.mean.cast");
    holds.push_back(mean.storage);
    lowering.emit(Kernel::copy, "running", {converted}, {kept}, {.holds = holds});
    holds.pop_back();
  }
}

/// Repeats weight, bias and running statistics for each sample, runs a batch norm over [1, batch *
/// channels, ...], averages the running statistics over the batch, and saves what backward reads.
void forward_instance_norm_pytorch(OperatorLowering& lowering) {
  std::vector<TensorView> repeats;
  if (has_scale_and_shift(lowering)) {
    repeats.push_back(repeated_per_sample(lowering, lowering.parameter(0), "weight.repeated"));
    repeats.push_back(repeated_per_sample(lowering, lowering.parameter(1), "bias.repeated"));
  }
  std::vector<TensorView> statistics;
  if (tracks(lowering)) {
    // Without weights the statistics have the input's format.
    for (int i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "running_mean" : "running_var";
      const TensorView kept = running(lowering, i);
      const TensorView own = has_scale_and_shift(lowering)
                                 ? kept
                                 : lowering.cast(kept, lowering.input().type, name + ".cast");
      statistics.push_back(repeated_per_sample(lowering, own, name + ".repeated"));
    }
    repeats.insert(repeats.end(), statistics.begin(), statistics.end());
  }
  const TensorView x = as_one_sample(lowering.contiguous(lowering.input(), "input.contiguous"));
  std::vector<TensorView> reads{x};
  reads.insert(reads.end(), repeats.begin(), repeats.end());
  std::vector<TensorView> writes{lowering.new_output()};
  TensorView result = writes[0];
  result.is_view = true;  // of [1, batch * channels, ...]
  lowering.set_output(0, result);
  const bool of_the_batch = lowering.training() || !tracks(lowering);
  // Without weight PyTorch takes its own kernel, which makes statistics in inference too.
  if (of_the_batch || !has_scale_and_shift(lowering)) {
    for (const std::string_view name : {"save_mean", "save_invstd"}) {
      writes.push_back(lowering.new_tensor(name, {x.shape[1]}, statistics_type(x.type),
                                           StorageClass::saved_auxiliary));
    }
  }
  if (of_the_batch) writes.insert(writes.end(), statistics.begin(), statistics.end());
  lowering.emit(of_the_batch ? Kernel::batch_norm_forward : Kernel::batch_norm_inference, "forward",
                reads, writes, {.holds = {lowering.input().storage}, .flops = flops_of(x)});
  if (tracks(lowering) && of_the_batch) {
    average_running_statistics(lowering, repeats, statistics);
  }
  lowering.save("input", x);
  if (has_scale_and_shift(lowering)) lowering.save("weight", repeats[0]);
  if (!of_the_batch) return;
  if (tracks(lowering)) {
    lowering.save("running_mean", statistics[0]);
    lowering.save("running_var", statistics[1]);
  }
  lowering.save("save_mean", writes[1]);
  lowering.save("save_invstd", writes[2]);
}

/// The gradient as [1, batch * channels, ...], copied where no view gives that. Autograd's formula
/// copies it again for cuDNN if it is not contiguous; PyTorch's own kernel does so within itself.
TensorView merged_gradient(OperatorLowering& lowering, const Shape& shape) {
  const TensorView dy = lowering.output_gradient();
  const auto seen = reshaped(dy, shape);
  if (!seen) return *reshaped(lowering.contiguous(dy, "grad.contiguous"), shape);
  return batch_norm_runs_on_cudnn(lowering) ? lowering.contiguous(*seen, "grad.contiguous")
                                            : lowering.contiguous_within(*seen, "grad.contiguous");
}

void backward_instance_norm_pytorch(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView x = lowering.saved("input");
  const TensorView dy = merged_gradient(lowering, x.shape);
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  std::vector<TensorView> writes{dx};
  std::vector<StorageId> holds{dy.storage};
  if (has_scale_and_shift(lowering)) {
    reads.push_back(lowering.saved("weight"));
    for (const std::string_view name : {"grad_weight.repeated", "grad_bias.repeated"}) {
      writes.push_back(lowering.new_tensor(name, {x.shape[1]}, reads.back().type,
                                           StorageClass::activation_gradient));
    }
  }
  reads.push_back(lowering.saved("save_mean"));
  reads.push_back(lowering.saved("save_invstd"));
  for (const std::string_view role : {"running_mean", "running_var"}) {
    if (lowering.has_saved(role)) holds.push_back(lowering.saved(role).storage);
  }
  lowering.emit(Kernel::batch_norm_backward, "backward", reads, writes,
                {.holds = holds, .flops = flops_of(x, 2)});
  if (lowering.input_needs_gradient()) {
    TensorView given = dx;
    given.is_view = true;  // of [1, batch * channels, ...]
    lowering.give_input_gradient(0, given);
  }
  for (int i = has_scale_and_shift(lowering) ? 1 : -1; i >= 0; --i) {
    if (!lowering.parameter_needs_gradient(i)) continue;
    const TensorView gradient = lowering.new_parameter_gradient(i);
    lowering.emit(Kernel::reduce, "backward.sum", {writes[static_cast<std::size_t>(i) + 1]},
                  {gradient});
    lowering.give_parameter_gradient(i, gradient);
  }
}

// Our executor.

TensorView scaled(OperatorLowering& lowering, const TensorView& x, double factor, double offset,
                  std::string_view suffix) {
  const TensorView y = lowering.new_tensor(suffix, x.shape, x.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("factor", factor);
  attributes.set("offset", offset);
  lowering.emit(Kernel::scale, suffix, {x}, {y}, {.attributes = attributes});
  return y;
}

/// The mean over the batch of [batch, channels], as [channels].
TensorView over_batch(OperatorLowering& lowering, const TensorView& x, std::string_view suffix) {
  const TensorView y = lowering.new_tensor(suffix, {x.shape[1]}, x.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("axes", std::vector<std::int64_t>{0});
  attributes.set("operation", std::string("mean"));
  lowering.emit(Kernel::reduce, suffix, {x}, {y}, {.attributes = attributes});
  return y;
}

/// Emits kept += momentum * (now - kept).
void update_running(OperatorLowering& lowering, const TensorView& kept, const TensorView& now,
                    const std::string& name) {
  const TensorView change =
      lowering.new_tensor(name + ".change", now.shape, now.type, StorageClass::activation);
  lowering.emit(Kernel::subtract, name + ".change", {now, kept}, {change});
  const TensorView part =
      scaled(lowering, change, lowering.attributes().real("momentum"), 0, name + ".part");
  lowering.emit(Kernel::accumulate, name + ".update", {kept, part}, {kept});
}

void update_running_statistics(OperatorLowering& lowering, const TensorView& mean,
                               const TensorView& rstd) {
  update_running(lowering, running(lowering, 0), over_batch(lowering, mean, "mean.over_batch"),
                 "running_mean");
  // The variance is 1 / rstd^2 - eps; the running one is unbiased, n / (n - 1) times it.
  const TensorView inverse =
      lowering.new_tensor("inverse", rstd.shape, rstd.type, StorageClass::activation);
  Attributes power;
  power.set("function", std::string("power"));
  power.set("exponent", -2.0);
  lowering.emit(Kernel::unary_forward, "inverse", {rstd}, {inverse}, {.attributes = power});
  double elements = 1;
  const Shape& shape = lowering.input().shape;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    elements *= static_cast<double>(shape[i].constant);
  }
  const double unbiased = elements > 1 ? elements / (elements - 1) : 1;
  const TensorView variance =
      scaled(lowering, over_batch(lowering, inverse, "inverse.over_batch"), unbiased,
             -unbiased * lowering.attributes().real("eps"), "variance");
  update_running(lowering, running(lowering, 1), variance, "running_var");
}

Attributes one_channel_a_group(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("groups", lowering.input().shape[1].constant);
  return attributes;
}

void forward_instance_norm_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  std::vector<TensorView> reads{x};
  for (int i = 0; i < (has_scale_and_shift(lowering) ? 2 : 0); ++i)
    reads.push_back(lowering.parameter(i));
  const TensorView y = lowering.new_output();
  if (tracks(lowering) && !lowering.training()) {
    reads.push_back(running(lowering, 0));
    reads.push_back(running(lowering, 1));
    lowering.emit(Kernel::batch_norm_inference, "forward", reads, {y}, {.flops = flops_of(x)});
    return;
  }
  const Shape rows{x.shape[0], x.shape[1]};
  const TensorView mean = lowering.new_tensor("mean", rows, x.type, StorageClass::saved_auxiliary);
  const TensorView rstd = lowering.new_tensor("rstd", rows, x.type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::group_norm_forward, "forward", reads, {y, mean, rstd},
                {.attributes = one_channel_a_group(lowering), .flops = flops_of(x)});
  lowering.save("input", x);
  if (has_scale_and_shift(lowering)) lowering.save("weight", lowering.parameter(0));
  lowering.save("mean", mean);
  lowering.save("rstd", rstd);
  if (tracks(lowering)) update_running_statistics(lowering, mean, rstd);
}

void backward_instance_norm_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, lowering.output_gradient()};
  std::vector<TensorView> writes{dx};
  if (has_scale_and_shift(lowering)) {
    reads.push_back(lowering.parameter(0));
    writes.push_back(lowering.new_parameter_gradient(0));
    writes.push_back(lowering.new_parameter_gradient(1));
  }
  reads.push_back(lowering.saved("mean"));
  reads.push_back(lowering.saved("rstd"));
  lowering.emit(Kernel::group_norm_backward, "backward", reads, writes,
                {.attributes = one_channel_a_group(lowering), .flops = flops_of(x, 2)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, {writes.begin() + 1, writes.end()});
}

}  // namespace

OperatorRow rows::instance_norm() {
  return {.name = "instance_norm",
          .doc = "normalization of each channel of each sample",
          .attributes = {epsilon_attribute(), momentum_attribute(), affine_attribute(false),
                         running_statistics_attribute(false)},
          .infer = infer_instance_norm,
          .lowering = {.stowage = {forward_instance_norm_stowage, backward_instance_norm_stowage},
                       .pytorch = {forward_instance_norm_pytorch, backward_instance_norm_pytorch}}};
}

}  // namespace stowage
