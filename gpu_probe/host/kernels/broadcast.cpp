// Kernels whose operands' shapes differ: broadcasting sums and products, and sums over axes.
#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::host {

namespace {

template <typename Element, typename Operation>
void binary(const KernelCall& call, const Element* a, const Element* b, Element* y,
            Operation operation) {
  const auto &left = call.reads[0], &right = call.reads[1], &result = call.writes[0];
  const std::int64_t total = count(result.shape);
  if (left.shape == result.shape && right.shape == result.shape) {
    for (std::int64_t i = 0; i < total; ++i) y[i] = operation(a[i], b[i]);
    return;
  }
  // One operand at a time; the result may share the first one's storage.
  const Sizes a_strides = broadcast_strides(left.shape, result.shape);
  const Sizes b_strides = broadcast_strides(right.shape, result.shape);
  std::vector<std::int64_t> b_at(static_cast<std::size_t>(total));
  walk(result.shape, b_strides,
       [&](std::int64_t i, std::int64_t at) { b_at[static_cast<std::size_t>(i)] = at; });
  walk(result.shape, a_strides, [&](std::int64_t i, std::int64_t at) {
    y[i] = operation(a[at], b[b_at[static_cast<std::size_t>(i)]]);
  });
}

template <typename Operation>
void binary_floats(const KernelCall& call, Operation operation) {
  binary(call, floats(call.reads[0]), floats(call.reads[1]), mutable_floats(call.writes[0]),
         operation);
}

/// Of indices too; those wrap around where they overflow, as PyTorch's do.
template <typename Operation>
void binary_numbers(const KernelCall& call, Operation operation) {
  if (call.writes.empty() || call.writes[0].type != DataType::int64) {
    return binary_floats(call, operation);
  }
  const auto wrapped = [&](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(
        operation(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  };
  binary(call, integers(call.reads[0]), integers(call.reads[1]), mutable_integers(call.writes[0]),
         wrapped);
}

}  // namespace

void add(const KernelCall& call) {
  binary_numbers(call, [](auto a, auto b) { return a + b; });
}

void multiply(const KernelCall& call) {
  binary_numbers(call, [](auto a, auto b) { return a * b; });
}

void subtract(const KernelCall& call) {
  binary_numbers(call, [](auto a, auto b) { return a - b; });
}

void divide(const KernelCall& call) {
  binary_floats(call, [](float a, float b) { return a / b; });
}

void sum_to_shape(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const Sizes strides = broadcast_strides(y.shape, x.shape);
  std::vector<double> sums(static_cast<std::size_t>(count(y.shape)), 0);
  const float* in = floats(x);
  walk(x.shape, strides,
       [&](std::int64_t i, std::int64_t at) { sums[static_cast<std::size_t>(at)] += in[i]; });
  float* out = mutable_floats(y);
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(sums[i]);
}

void channel_sum(const KernelCall& call) {
  const auto &dy = call.reads[0], &db = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", dy.shape.size(), 1);
  const std::int64_t channels = dy.shape[axis];
  require_shape("db", db, {channels});
  const std::int64_t outer = count(dy.shape, 0, axis);
  const std::int64_t inner = count(dy.shape, axis + 1, dy.shape.size());
  std::vector<double> sums(static_cast<std::size_t>(channels), 0);
  const float* in = floats(dy);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (auto& sum : sums) {
      for (std::int64_t i = 0; i < inner; ++i) sum += *in++;
    }
  }
  float* out = mutable_floats(db);
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(sums[i]);
}

}  // namespace stowage::host
