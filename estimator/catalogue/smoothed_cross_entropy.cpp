// PyTorch's cross_entropy with label_smoothing (ATen/native/LossNLL.cpp,
// cross_entropy_loss_label_smoothing): besides the two kernels of the plain one, the
// log-probabilities are summed over the classes, what is ignored is masked out of the sums, and two
// weighted means are added. In backward the gradient of the sums is a view, repeated over the
// classes, so that the engine adds it to the other one in a new tensor. Under autocast the
// logarithms stay in the format of the logits, as in the plain one, and are saved beside their
// float32 copy; both gradients are converted, which makes the first a tensor of its own.
#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/loss.hpp"

namespace stowage {

namespace {

NodeExtras scaling_by(double value, Affine flops) {
  NodeExtras extras{.flops = flops};
  extras.attributes.set("factor", value);
  extras.attributes.set("offset", 0.0);
  return extras;
}

TensorView repeated_over_classes(TensorView gradient, const Shape& shape) {
  gradient.shape = shape;
  gradient.strides.insert(gradient.strides.begin() + 1, 0);
  gradient.is_view = true;
  return gradient;
}

}  // namespace

/// cross_entropy_loss_label_smoothing of ATen/native/LossNLL.cpp: log_softmax, the nll loss, the
/// sum over classes with ignored targets masked, its mean, and the weighted sum of both parts.
void forward_smoothed_cross_entropy(OperatorLowering& lowering) {
  const bool upcast = lowering.attributes().boolean("upcast");
  const DataType type = lowering.output_type().type;
  const TensorView given = input_view(lowering, Kernel::log_softmax_forward);
  const TensorView logits = upcast ? lowering.cast(given, type, "input.cast") : given;
  const TensorView target = lowering.contiguous(lowering.input(1), "target.contiguous");
  const Affine elements = element_count(logits.shape);
  const Affine targets = element_count(target.shape);
  const auto made = [&](std::string_view name, const Shape& shape, DataType format,
                        StorageClass storage_class) {
    return lowering.new_tensor(name, shape, format, storage_class);
  };
  const TensorView logp =
      made("log_probabilities", logits.shape, logits.type, StorageClass::activation);
  lowering.emit(Kernel::log_softmax_forward, "log_softmax", {logits}, {logp},
                {.flops = elements * Affine(5)});
  const TensorView converted = lowering.cast(logp, type, "log_probabilities.cast");
  const TensorView nll = made("nll", {}, type, StorageClass::activation);
  const TensorView total = made("total_weight", {}, type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::nll_loss_forward, "nll_loss", {converted, target}, {nll, total},
                {.flops = targets});
  const TensorView sums = made("class_sums", target.shape, type, StorageClass::activation);
  lowering.emit(Kernel::reduce, "class_sums", {logp}, {sums}, {.flops = elements});
  const TensorView smooth = made("smooth", target.shape, type, StorageClass::activation);
  lowering.emit(Kernel::scale, "smooth", {sums}, {smooth}, scaling_by(-1, targets));
  const TensorView mask =
      made("ignored", target.shape, DataType::boolean, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::fill, "ignored", {target}, {mask}, {.flops = targets});
  const TensorView count = made("count", {}, DataType::int64, StorageClass::saved_auxiliary);
  const TensorView counted =
      made("counted", target.shape, DataType::boolean, StorageClass::activation);
  lowering.emit(Kernel::fill, "counted", {mask}, {counted}, {.flops = targets});
  lowering.emit(Kernel::reduce, "count", {counted}, {count}, {.flops = targets});
  const auto number = [&](std::string_view name, const TensorView& of, StorageId held) {
    const TensorView result = made(name, {}, type, StorageClass::activation);
    lowering.emit(Kernel::reduce, name, {of}, {result}, {.holds = {held}});
    return result;
  };
  // C++'s variables and temporaries live to the end of their statements, and of the function.
  const TensorView smooth_sum = number("smooth_sum", smooth, counted.storage);
  const TensorView smooth_mean = number("smooth_mean", smooth_sum, counted.storage);
  const TensorView nll_part = number("nll_part", nll, smooth.storage);
  const TensorView smooth_part = number("smooth_part", smooth_mean, smooth.storage);
  const TensorView loss = new_loss(lowering);
  lowering.emit(Kernel::add, "forward", {nll_part, smooth_part}, {loss},
                {.holds = {nll.storage, smooth_mean.storage, smooth.storage}, .flops = targets});
  lowering.save("result", logp);
  lowering.save("self", converted);
  lowering.save("target", target);
  lowering.save("total_weight", total);
  lowering.save("mask", mask);
  lowering.save("count", count);
  finish_loss(lowering, loss);
}

/// Makes the gradients of the two parts, then those of the log probabilities that come from the sum
/// over classes and from the nll loss, adds them, and emits log_softmax's backward.
void backward_smoothed_cross_entropy(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView logp = lowering.saved("result");
  const TensorView converted = lowering.saved("self");
  const TensorView target = lowering.saved("target");
  const Affine elements = element_count(logp.shape);
  const Affine targets = element_count(target.shape);
  const double share = lowering.attributes().real("label_smoothing");
  const auto made = [&](std::string_view name, const Shape& shape) {
    return lowering.new_tensor(name, shape, converted.type, StorageClass::activation_gradient);
  };
  const TensorView one = loss_gradient(lowering);
  const TensorView d_smooth_mean = made("grad_smooth_mean", {});
  lowering.emit(Kernel::scale, "backward.smooth_mean", {one}, {d_smooth_mean},
                scaling_by(share, 1));
  const TensorView d_nll = made("grad_nll", {});
  lowering.emit(Kernel::scale, "backward.nll", {one}, {d_nll}, scaling_by(1 - share, 1));
  const TensorView d_masked = made("grad_masked", target.shape);
  lowering.emit(Kernel::expand, "backward.masked",
                {d_smooth_mean, lowering.saved("count"), lowering.saved("mask")}, {d_masked},
                {.flops = targets});
  const TensorView d_sums = made("grad_class_sums", target.shape);
  lowering.emit(Kernel::scale, "backward.class_sums", {d_masked}, {d_sums},
                scaling_by(-1, targets));
  // The engine takes the gradients in this order, and converts each as it comes.
  const TensorView of_sums =
      lowering.cast(repeated_over_classes(d_sums, logp.shape), logp.type, "grad_class_sums.cast");
  const TensorView d_picked = made("grad_picked", logp.shape);
  lowering.emit(Kernel::nll_loss_backward, "backward.nll_loss",
                {d_nll, converted, target, lowering.saved("total_weight")}, {d_picked},
                {.flops = elements});
  const TensorView picked = lowering.cast(d_picked, logp.type, "grad_picked.cast");
  TensorView d_logp = of_sums;
  if (of_sums.is_view) {
    d_logp = made("grad_log_probabilities", logp.shape);
    lowering.emit(Kernel::add, "backward.sum", {picked, of_sums}, {d_logp}, {.flops = elements});
  } else {
    lowering.emit(Kernel::accumulate, "backward.sum", {d_logp, picked}, {d_logp},
                  {.flops = elements});
  }
  const TensorView dx =
      lowering.new_tensor("grad_logits", logp.shape, logp.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::log_softmax_backward, "backward.log_softmax", {logp, d_logp}, {dx},
                {.flops = elements * Affine(3)});
  lowering.give_input_gradient(0, dx);
}

}  // namespace stowage
