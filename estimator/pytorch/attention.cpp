#include "estimator/pytorch/attention.hpp"

#include <algorithm>
#include <vector>

namespace stowage {

namespace {

using Implementation = AttentionImplementation;

constexpr std::int64_t float_size = 4;

/// A product that is checked for overflow, since a recorded step may have sizes of any magnitude.
Affine product(std::initializer_list<std::int64_t> factors) {
  Affine result = 1;
  for (const std::int64_t factor : factors) result = result * Affine(factor);
  return result;
}

std::int64_t up_to_multiple(std::int64_t value, std::int64_t multiple) {
  return checked_add(value, multiple - 1) / multiple * multiple;
}

bool is_two_bytes(DataType type) { return element_size(type) == 2; }

/// Rows and columns of the blocks of the memory-efficient backward kernel that is chosen.
struct Blocks {
  std::int64_t rows = 64, columns = 64;
};
Blocks efficient_blocks(std::int64_t features, DataType type, double capability) {
  // Cards of 8.6, 8.9 and 12.x lack the shared memory for the large blocks.
  const bool roomy = capability < 8.05 || (capability > 8.95 && capability < 12);
  if (features <= 64) return {};
  if (is_two_bytes(type)) {
    if (!roomy && features <= 96) return {128, 64};
    if (features <= 128) return roomy ? Blocks{128, 128} : Blocks{};
    return roomy ? Blocks{128, 64} : Blocks{};
  }
  return roomy ? Blocks{128, 64} : Blocks{};
}

/// The gradient of the query is summed in float32 blocks, each with a lock; where a head does not
/// fit a block's registers, those of key and value too (one split of the keys is assumed).
Affine efficient_workspace(double capability, const AttentionSizes& s, DataType type) {
  const std::int64_t widest = std::max(s.features, s.value_features);
  const bool half = is_two_bytes(type);
  if (capability < 7 && !half) return 0;
  const Blocks blocks = efficient_blocks(widest, type, capability);
  constexpr std::int64_t lock_bytes = 16;
  const Affine count = product({up_to_multiple(s.queries, blocks.rows) / blocks.rows,
                                up_to_multiple(s.features, blocks.columns) / blocks.columns});
  Affine bytes = count * Affine(lock_bytes + float_size * blocks.rows * blocks.columns);
  if (half && widest > blocks.rows) {
    const Affine columns = Affine(up_to_multiple(s.features, blocks.rows)) +
                           Affine(up_to_multiple(s.value_features, blocks.rows));
    bytes = bytes + Affine(float_size * blocks.columns) * columns;
  }
  return s.batch * (Affine(s.heads) * bytes);
}

/// With shared key heads, the kernels make gradients for each query head and sum them.
Affine expanded_gradients(const AttentionSizes& s, DataType type) {
  if (s.groups == 1) return 0;
  return s.batch * (product({s.heads, s.keys, element_size(type)}) *
                    (Affine(s.features) + Affine(s.value_features)));
}

Affine contiguous_copy(const TensorView& view) {
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  return is_contiguous(permuted(view, swap)) ? Affine(0) : byte_count(view);
}

}  // namespace

std::string_view to_string(AttentionImplementation implementation) {
  switch (implementation) {
    case Implementation::flash:
      return "flash";
    case Implementation::efficient:
      return "efficient";
    case Implementation::cudnn:
      return "cudnn";
    case Implementation::math:
      break;
  }
  return "math";
}

AttentionSizes attention_sizes(const Shape& query, const Shape& key, const Shape& value) {
  const std::size_t rank = query.size();
  if (rank == 3) {  // a head a sample
    return {.batch = query[0],
            .heads = 1,
            .queries = query[1].constant,
            .keys = key[1].constant,
            .features = query[2].constant,
            .value_features = value[2].constant};
  }
  Affine batch = query[0];
  for (std::size_t axis = 1; axis + 3 < rank; ++axis) batch = batch * query[axis];
  return {.batch = batch,
          .heads = query[rank - 3].constant,
          .groups = query[rank - 3].constant / key[rank - 3].constant,
          .queries = query[rank - 2].constant,
          .keys = key[rank - 2].constant,
          .features = query[rank - 1].constant,
          .value_features = value[rank - 1].constant};
}

Affine attention_product_flops(const AttentionSizes& s, std::int64_t features) {
  return s.batch * product({2, s.heads, s.queries, s.keys, features});
}

Affine fused_attention_flops(const AttentionSizes& s) {
  return attention_product_flops(s, s.features) + attention_product_flops(s, s.value_features);
}

Affine fused_attention_backward_flops(const AttentionSizes& s) {
  return s.batch * (product({5, s.heads, s.queries, s.keys}) *
                    (Affine(s.features) + Affine(s.value_features)));
}

Affine attention_scratch(AttentionImplementation implementation, const AttentionSizes& s,
                         DataType type) {
  if (implementation == Implementation::efficient && is_two_bytes(type) && s.value_features > 128) {
    return s.batch * product({s.heads, s.queries, s.value_features, float_size});
  }
  return 0;
}

Affine attention_backward_scratch(AttentionImplementation implementation, double compute_capability,
                                  const AttentionSizes& s, const TensorView& dy,
                                  const TensorView& out) {
  const Affine rows = s.batch * Affine(s.heads);
  if (implementation == Implementation::flash) {
    const std::int64_t queries = up_to_multiple(s.queries, 128);
    const std::int64_t features = up_to_multiple(s.features, s.features <= 128 ? 32 : 64);
    return contiguous_copy(dy) + contiguous_copy(out) + expanded_gradients(s, dy.type) +
           rows * product({queries, float_size, checked_add(1, features)});
  }
  if (implementation == Implementation::cudnn) {
    return dy.strides.back() == Affine(1) ? Affine(0) : byte_count(dy);
  }
  const Affine delta = rows * product({s.queries, float_size});
  const Affine later = delta + efficient_workspace(compute_capability, s, dy.type);
  const Affine always = contiguous_copy(dy) + expanded_gradients(s, dy.type);
  const bool kernel_computes_delta =
      is_two_bytes(dy.type) && (compute_capability >= 7.5 || s.features <= 64);
  if (kernel_computes_delta) return always + later;
  // (grad_out.to(float) * out.to(float)).sum(-1), then transposed and copied.
  const Affine terms = element_count(dy.shape) * Affine(float_size);
  const Affine casts = is_two_bytes(dy.type) ? terms + terms : Affine(0);
  return always + larger(terms + casts + delta, later);
}

Affine larger(Affine a, Affine b) {
  return a.slope != b.slope ? (a.slope > b.slope ? a : b) : (a.constant > b.constant ? a : b);
}

}  // namespace stowage
