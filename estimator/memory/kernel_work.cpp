#include "estimator/memory/kernel_work.hpp"

#include <algorithm>

namespace stowage {

namespace {

/// Of the axes from `first` on.
double count_at(const Shape& shape, std::int64_t batch, std::size_t first = 0) {
  double count = 1;
  for (std::size_t i = first; i < shape.size(); ++i) count *= shape[i].real_at(batch);
  return count;
}

bool is_matrix_product(Kernel kernel) {
  switch (kernel) {
    case Kernel::linear_forward:
    case Kernel::linear_backward_data:
    case Kernel::linear_backward_filter:
    case Kernel::matmul:
      return true;
    default:
      return false;
  }
}

bool is_normalization(Kernel kernel) {
  switch (kernel) {
    case Kernel::batch_norm_forward:
    case Kernel::batch_norm_backward:
    case Kernel::layer_norm_forward:
    case Kernel::layer_norm_backward:
    case Kernel::group_norm_forward:
    case Kernel::group_norm_backward:
    case Kernel::rms_norm_forward:
    case Kernel::rms_norm_backward:
      return true;
    default:
      return false;
  }
}

/// The first floating-point argument's: the operands of a product have one format.
DataType operand_type(const KernelNode& node) {
  for (const TensorView& view : node.reads) {
    if (is_floating_point(view.type)) return view.type;
  }
  return DataType::float32;
}

MathFormat product_format(DataType type, bool tf32_allowed) {
  switch (type) {
    case DataType::float64:
      return MathFormat::fp64;
    case DataType::float16:
      return MathFormat::fp16;
    case DataType::bfloat16:
      return MathFormat::bf16;
    default:
      return tf32_allowed ? MathFormat::tf32 : MathFormat::fp32;
  }
}

// Kernels without a matrix product compute 16-bit values in fp32.
MathFormat vector_format(DataType type) {
  return type == DataType::float64 ? MathFormat::fp64 : MathFormat::fp32;
}

void describe_convolution(const SizedStep& step, const ConvolutionCall& call, KernelWork& work) {
  const std::int64_t groups = std::max<std::int64_t>(call.window->groups, 1);
  const bool has_filter = call.w.shape.size() > 2;
  work.kind = groups == 1 ? KernelKind::convolution : KernelKind::grouped_convolution;
  work.format = product_format(call.x.type, step.graph->settings.convolutions.tf32);
  if (groups > 1 && has_filter && call.w.shape[1] == Affine(1)) {
    work.kind = KernelKind::depthwise_convolution;
    work.format = vector_format(call.x.type);
    return;
  }
  if (call.layout == TensorLayout::contiguous) work.reordered_bytes = work.bytes;
  if (!has_filter || call.x.shape.size() < 3 || call.y.shape.size() < 3) return;
  work.products = static_cast<double>(groups);
  const std::int64_t batch = step.batch;
  const double k = call.w.shape[0].real_at(batch) / work.products;
  const double c = call.w.shape[1].real_at(batch), window = count_at(call.w.shape, batch, 2);
  const double samples = call.x.shape[0].real_at(batch);
  const double inputs = samples * count_at(call.x.shape, batch, 2);
  const double outputs = samples * count_at(call.y.shape, batch, 2);
  switch (call.direction) {
    case ConvolutionCall::Direction::forward:
      work.rows = outputs, work.columns = k, work.depth = c * window;
      break;
    case ConvolutionCall::Direction::backward_data:
      work.rows = inputs, work.columns = c, work.depth = k * window;
      break;
    case ConvolutionCall::Direction::backward_filter:
      work.rows = k, work.columns = c * window, work.depth = outputs;
      break;
  }
}

/// The result's last axis are the columns. A matmul's last but one are the rows, and what lies
/// before them are products side by side. The depth follows from the operations, so that axes that
/// are summed over count in it.
void describe_product(const SizedStep& step, const KernelNode& node, KernelWork& work) {
  work.kind = KernelKind::product;
  work.format = product_format(operand_type(node), false);
  if (node.writes.empty() || node.writes.front().shape.empty()) return;
  const Shape& shape = node.writes.front().shape;
  const double results = count_at(shape, step.batch);
  work.columns = shape[shape.size() - 1].real_at(step.batch);
  work.rows = results / work.columns;
  if (node.kernel == Kernel::matmul && shape.size() > 2) {
    work.rows = shape[shape.size() - 2].real_at(step.batch);
    work.products = results / (work.rows * work.columns);
  }
  work.depth = work.flops / (2 * results);
}

/// Of the queries with the keys, whose number is not read off: only few are fewer than features.
void describe_attention(const SizedStep& step, const KernelNode& node, KernelWork& work) {
  work.kind = KernelKind::attention;
  work.format = product_format(operand_type(node), false);
  if (node.reads.empty() || node.reads.front().shape.size() < 3) return;
  const Shape& query = node.reads.front().shape;
  work.rows = query[query.size() - 2].real_at(step.batch);
  work.columns = work.depth = query[query.size() - 1].real_at(step.batch);
  work.products = count_at(query, step.batch) / (work.rows * work.depth);
}

bool is_positive(double value) { return value > 0 && value <= 1e300; }

KernelWork described(const SizedStep& step, const KernelNode& node, KernelWork work) {
  if (node.convolution >= 0) {
    describe_convolution(step, step.graph->convolutions[static_cast<std::size_t>(node.convolution)],
                         work);
  } else if (is_matrix_product(node.kernel)) {
    describe_product(step, node, work);
  } else if (node.kernel == Kernel::rnn_forward || node.kernel == Kernel::rnn_backward) {
    work.kind = KernelKind::product;  // of several shapes, a layer and a position at a time
    work.format = product_format(operand_type(node), step.graph->settings.convolutions.tf32);
  } else if (node.kernel == Kernel::attention_forward ||
             node.kernel == Kernel::attention_backward) {
    describe_attention(step, node, work);
  } else {
    if (is_normalization(node.kernel)) work.kind = KernelKind::normalization;
    if (node.kernel == Kernel::foreach_update) work.kind = KernelKind::update;
    work.format = vector_format(operand_type(node));
  }
  if (!is_positive(work.rows) || !is_positive(work.columns) || !is_positive(work.depth) ||
      !is_positive(work.products)) {
    work.rows = work.columns = work.depth = 0;
    work.products = 1;
  }
  return work;
}

}  // namespace

std::string_view to_string(MathFormat format) {
  constexpr std::array<std::string_view, all_math_formats.size()> names{"fp64", "fp32", "tf32",
                                                                        "fp16", "bf16"};
  return names[static_cast<std::size_t>(format)];
}

KernelWork kernel_work(const SizedStep& step, const KernelNode& node) {
  return described(
      step, node, {.flops = flops_of(node, step.batch), .bytes = bytes_moved_by(node, step.batch)});
}

KernelWork kernel_work(const SizedStep& step, NodeId id) {
  return described(step, step.graph->node(id),
                   {.flops = step.flops[id.index()], .bytes = step.bytes_moved[id.index()]});
}

}  // namespace stowage
