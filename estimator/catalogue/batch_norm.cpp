// batch_norm over the channel axis 1. Saved for backward as in PyTorch's native_batch_norm and
// cudnn_batch_norm: the input, the weight, the running statistics and the batch's own. PyTorch
// makes the gradients of weight and bias even where they are frozen (cudnn_batch_norm_backward has
// no mask), and frees them at once.
#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// instance_norm, which asks too, always has one.
bool has_bias(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  return !attributes.has("bias") || attributes.boolean("bias");
}

/// Weight and bias: parameters, or the second and third input if other layers compute them.
struct AffineArguments {
  bool computed = false;
  int count = 0;

  explicit AffineArguments(const OperatorLowering& lowering)
      : computed(lowering.input_count() > 1),
        count(computed                                   ? lowering.input_count() - 1
              : !lowering.attributes().boolean("affine") ? 0
              : has_bias(lowering)                       ? 2
                                                         : 1) {}

  [[nodiscard]] const TensorView& at(const OperatorLowering& lowering, int i) const {
    return computed ? lowering.input(i + 1) : lowering.parameter(i);
  }
  [[nodiscard]] bool need_gradient(const OperatorLowering& lowering, int i) const {
    if (i >= count) return false;
    return computed ? lowering.input_needs_gradient(i + 1) : lowering.parameter_needs_gradient(i);
  }
  [[nodiscard]] TensorView new_gradient(OperatorLowering& lowering, int i) const {
    return computed ? lowering.new_input_gradient(i + 1) : lowering.new_parameter_gradient(i);
  }
  void give(OperatorLowering& lowering, int i, const TensorView& gradient) const {
    if (!need_gradient(lowering, i)) return;
    if (computed) return lowering.give_input_gradient(i + 1, gradient);
    lowering.give_parameter_gradient(i, gradient);
  }
};

}  // namespace

bool batch_norm_runs_on_cudnn(const OperatorLowering& lowering) {
  const AffineArguments affine(lowering);
  if (affine.count < 2) return false;
  if (lowering.input().shape.size() < 3) return false;
  const DataType type = lowering.input().type;
  if (type == DataType::float16) return affine.at(lowering, 0).type == DataType::float32;
  return type != DataType::bfloat16;
}

namespace {

constexpr std::int64_t batch_norm_flops = 8;  // two statistics, normalise, scale, shift

tl::expected<Inference, InferenceError> infer_batch_norm(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  if (!attributes.boolean("training") && !attributes.boolean("track_running_stats")) {
    return refuse("without running statistics there is nothing else to normalize by", "training");
  }
  const Shape channels{x.shape[1]};
  if (inputs.size() > 1 && attributes.boolean("affine")) {
    return refuse("has a learned weight and one as second input", "affine", 1,
                  "write `affine: false`");
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (auto error = want_floating(inputs[i], input)) return tl::unexpected(*error);
    if (inputs[i].shape == channels) continue;
    return refuse(fmt::format("the {} is {} where {} is needed", i == 1 ? "weight" : "bias",
                              to_string(inputs[i].shape), to_string(channels)),
                  {}, input);
  }
  Inference result;
  result.outputs = {x};
  add_affine_parameters(result, attributes, channels, x.type);
  if (attributes.boolean("track_running_stats")) add_running_statistics(result, channels, x.type);
  result.flops = element_count(x.shape) * Affine(batch_norm_flops);
  return result;
}

struct BatchNormParameters {
  std::vector<TensorView> affine;   // weight, bias
  std::vector<TensorView> running;  // mean, variance
};

BatchNormParameters batch_norm_parameters(const OperatorLowering& lowering) {
  BatchNormParameters parameters;
  const AffineArguments affine(lowering);
  for (int i = 0; i < affine.count; ++i) parameters.affine.push_back(affine.at(lowering, i));
  const int at = affine.computed ? 0 : affine.count;
  if (lowering.attributes().boolean("track_running_stats")) {
    parameters.running = {lowering.parameter(at), lowering.parameter(at + 1)};
  }
  return parameters;
}

/// Our executor's kernels need a bias if there is a weight.
TensorView passing_bias(OperatorLowering& lowering, const TensorView& weight) {
  TensorView bias =
      lowering.new_tensor("passing_bias", weight.shape, weight.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("value", 0.0);
  lowering.emit(Kernel::fill, "passing_bias", {}, {bias}, {.attributes = attributes});
  return bias;
}

/// Our executor's kernel updates running statistics; if the layer has none it gets temporary ones.
std::vector<TensorView> passing_statistics(OperatorLowering& lowering, const Shape& channels) {
  std::vector<TensorView> running;
  for (const std::string_view name : {"passing_mean", "passing_var"}) {
    running.push_back(
        lowering.new_tensor(name, channels, DataType::float32, StorageClass::activation));
    Attributes attributes;
    attributes.set("value", 0.0);
    lowering.emit(Kernel::fill, name, {}, {running.back()}, {.attributes = attributes});
  }
  return running;
}

/// Normalizes by the batch's own statistics, not by the running ones.
bool of_the_batch(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  if (!attributes.boolean("track_running_stats")) return true;
  return lowering.training() && attributes.boolean("training");
}

void add_batch_statistics(OperatorLowering& lowering, const TensorView& x,
                          std::vector<TensorView>& writes) {
  for (const std::string_view name : {"save_mean", "save_invstd"}) {
    writes.push_back(lowering.new_tensor(name, {x.shape[1]}, statistics_type(x.type),
                                         StorageClass::saved_auxiliary));
    lowering.save(name, writes.back());
  }
}

/// `writes`: the result, and the batch's statistics where they are made.
void emit_forward(OperatorLowering& lowering, const TensorView& x,
                  const BatchNormParameters& parameters, std::vector<TensorView> writes) {
  const bool by_batch = of_the_batch(lowering);
  std::vector<TensorView> reads{x};
  reads.insert(reads.end(), parameters.affine.begin(), parameters.affine.end());
  reads.insert(reads.end(), parameters.running.begin(), parameters.running.end());
  if (by_batch) writes.insert(writes.end(), parameters.running.begin(), parameters.running.end());
  lowering.emit(by_batch ? Kernel::batch_norm_forward : Kernel::batch_norm_inference, "forward",
                reads, std::move(writes),
                {.holds = {lowering.input().storage},
                 .flops = element_count(x.shape) * Affine(batch_norm_flops)});
}

void forward_batch_norm_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  BatchNormParameters parameters = batch_norm_parameters(lowering);
  const bool by_batch = of_the_batch(lowering);
  if (parameters.running.empty()) parameters.running = passing_statistics(lowering, {x.shape[1]});
  const bool scales = !parameters.affine.empty();
  if (parameters.affine.size() == 1) {
    parameters.affine.push_back(passing_bias(lowering, parameters.affine[0]));
  }
  std::vector<TensorView> writes{lowering.new_output()};
  if (by_batch) add_batch_statistics(lowering, x, writes);
  emit_forward(lowering, x, parameters, std::move(writes));
  const bool scale_learns = AffineArguments(lowering).need_gradient(lowering, 0);
  if (by_batch || scale_learns) lowering.save("input", x);
  if (scales) lowering.save("weight", parameters.affine[0]);
}

void forward_batch_norm_pytorch(OperatorLowering& lowering) {
  // at::batch_norm hands cuDNN a copy without gaps, which is saved; its own kernels make theirs.
  const bool cudnn = batch_norm_runs_on_cudnn(lowering);
  const bool channels_last = suggests_channels_last(lowering.input());
  const TensorView x =
      cudnn ? lowering.contiguous(lowering.input(), "input.contiguous", channels_last)
            : input_view(lowering, Kernel::batch_norm_forward);
  const BatchNormParameters parameters = batch_norm_parameters(lowering);
  std::vector<TensorView> writes{laid_out(lowering.new_output(), channels_last)};
  if (!cudnn) writes[0].strides = dense_strides(x.shape, lowering.input().strides);  // empty_like
  lowering.set_output(0, writes[0]);
  // PyTorch's own kernel makes statistics in inference too.
  if (of_the_batch(lowering) || !cudnn) add_batch_statistics(lowering, x, writes);
  emit_forward(lowering, x, parameters, std::move(writes));
  lowering.save("input", cudnn ? x : lowering.input());
  if (!parameters.affine.empty()) lowering.save("weight", parameters.affine[0]);
  if (parameters.running.empty()) return;
  lowering.save("running_mean", parameters.running[0]);
  lowering.save("running_var", parameters.running[1]);
}

struct BackwardArguments {
  TensorView x, dy, dx;
  bool makes_affine = true;  ///< writes the gradients of weight and bias
  bool wants_bias = false;   ///< beside a weight's gradient the kernel writes a bias', used or not
};

void emit_backward(OperatorLowering& lowering, const BackwardArguments& in) {
  const BatchNormParameters parameters = batch_norm_parameters(lowering);
  const AffineArguments affine(lowering);
  const bool by_batch = of_the_batch(lowering);
  std::vector<TensorView> reads{in.x, in.dy};
  std::vector<TensorView> writes{in.dx};
  if (affine.count > 0) {
    const TensorView& weight = parameters.affine[0];
    reads.push_back(weight);
    for (int i = 0; in.makes_affine && i < affine.count; ++i) {
      writes.push_back(affine.new_gradient(lowering, i));
    }
    if (in.makes_affine && in.wants_bias && affine.count == 1) {
      writes.push_back(lowering.new_tensor("grad_passing_bias", weight.shape, weight.type,
                                           StorageClass::temporary));
    }
  }
  reads.push_back(by_batch ? lowering.saved("save_mean") : parameters.running[0]);
  reads.push_back(by_batch ? lowering.saved("save_invstd") : parameters.running[1]);
  lowering.emit(Kernel::batch_norm_backward, "backward", reads, writes,
                {.flops = element_count(in.x.shape) * Affine(2 * batch_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, in.dx);
  for (int i = 0; in.makes_affine && i < affine.count; ++i) {
    affine.give(lowering, i, writes[static_cast<std::size_t>(i) + 1]);
  }
}

void backward_batch_norm_pytorch(OperatorLowering& lowering) {
  const bool cudnn = batch_norm_runs_on_cudnn(lowering);
  const bool cudnn_backward = cudnn && of_the_batch(lowering);
  const bool channels_last = suggests_channels_last(lowering.saved("input"));
  const TensorView& saved = lowering.saved("input");
  const TensorView x =
      argument_view(lowering, Kernel::batch_norm_backward, 0, saved, saved, "backward.input");
  // Autograd's formula hands cuDNN a copy of the gradient; PyTorch's own kernels take any strides.
  const TensorView dy = cudnn_backward ? lowering.contiguous(lowering.output_gradient(),
                                                             "grad.contiguous", channels_last)
                                       : lowering.output_gradient();
  TensorView dx = laid_out(lowering.new_input_gradient(), channels_last);
  if (!cudnn) dx.strides = dense_strides(x.shape, lowering.saved("input").strides);
  const bool wanted = AffineArguments(lowering).need_gradient(lowering, 0);
  emit_backward(lowering, {x, dy, dx, cudnn_backward || wanted, false});
}

// With running statistics the layer scales and shifts each channel, so our executor's backward uses
// simple kernels.

TensorView made(OperatorLowering& lowering, Kernel kernel, std::string_view suffix,
                std::vector<TensorView> reads, const Shape& shape, Attributes attributes = {}) {
  const TensorView y =
      lowering.new_tensor(suffix, shape, reads[0].type, StorageClass::activation_gradient);
  lowering.emit(kernel, suffix, std::move(reads), {y},
                {.attributes = std::move(attributes), .flops = element_count(shape)});
  return y;
}

/// [channels] as [channels, 1, ...], to go with [batch, channels, ...].
TensorView along_channels(const TensorView& values, const TensorView& x) {
  Shape shape(x.shape.size() - 1, Affine(1));
  shape[0] = x.shape[1];
  return *reshaped(values, shape);
}

TensorView running_rstd(OperatorLowering& lowering, const TensorView& variance) {
  Attributes shift;
  shift.set("factor", 1.0);
  shift.set("offset", lowering.attributes().real("eps"));
  const TensorView shifted =
      made(lowering, Kernel::scale, "backward.variance", {variance}, variance.shape, shift);
  Attributes power;
  power.set("function", std::string("power"));
  power.set("exponent", -0.5);
  return made(lowering, Kernel::unary_forward, "backward.rstd", {shifted}, variance.shape, power);
}

void backward_by_running_statistics(OperatorLowering& lowering) {
  const BatchNormParameters parameters = batch_norm_parameters(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView rstd = running_rstd(lowering, parameters.running[1]);
  const AffineArguments affine(lowering);
  if (affine.need_gradient(lowering, 0)) {
    const TensorView x = lowering.saved("input");
    const TensorView centred = made(lowering, Kernel::subtract, "backward.centred",
                                    {x, along_channels(parameters.running[0], x)}, x.shape);
    const TensorView product =
        made(lowering, Kernel::multiply, "backward.product", {centred, dy}, x.shape);
    Attributes channels;
    channels.set("axis", std::int64_t{1});
    const TensorView sum = made(lowering, Kernel::channel_sum, "backward.product.sum", {product},
                                rstd.shape, channels);
    const TensorView dw = affine.new_gradient(lowering, 0);
    lowering.emit(Kernel::multiply, "backward.weight", {sum, rstd}, {dw});
    affine.give(lowering, 0, dw);
  }
  if (affine.need_gradient(lowering, 1)) {
    Attributes channels;
    channels.set("axis", std::int64_t{1});
    const TensorView db = affine.new_gradient(lowering, 1);
    lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                  {.attributes = channels, .flops = element_count(dy.shape)});
    affine.give(lowering, 1, db);
  }
  if (!lowering.input_needs_gradient()) return;
  const TensorView factor = parameters.affine.empty()
                                ? rstd
                                : made(lowering, Kernel::multiply, "backward.factor",
                                       {rstd, parameters.affine[0]}, rstd.shape);
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::multiply, "backward.data", {dy, along_channels(factor, dy)}, {dx},
                {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

void backward_batch_norm_stowage(OperatorLowering& lowering) {
  if (!of_the_batch(lowering)) return backward_by_running_statistics(lowering);
  emit_backward(lowering, {.x = lowering.saved("input"),
                           .dy = lowering.output_gradient(),
                           .dx = lowering.new_input_gradient(),
                           .wants_bias = true});
}

}  // namespace

OperatorRow rows::batch_norm() {
  return {
      .name = "batch_norm",
      .doc =
          "batch normalization over axis 1, with running statistics; a second and a third input "
          "are a computed weight and bias",
      .attributes = {epsilon_attribute(),
                     momentum_attribute(),
                     affine_attribute(true),
                     affine_bias_attribute(),
                     running_statistics_attribute(true),
                     {.name = "training",
                      .type = AttributeType::boolean,
                      .doc = "false: by the running statistics in training too, as after eval()",
                      .default_value = true}},
      .max_inputs = 3,
      .infer = infer_batch_norm,
      .lowering = {.stowage = {forward_batch_norm_stowage, backward_batch_norm_stowage},
                   .pytorch = {forward_batch_norm_pytorch, backward_batch_norm_pytorch}}};
}

}  // namespace stowage
