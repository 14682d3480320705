#include "gpu_probe/cudnn/attention_graph.hpp"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace stowage {
namespace {

using Operand = AttentionQuery::Operand;
using Direction = AttentionQuery::Direction;
using Part = AttentionTensor;

cudnnDataType_t data_type(DataType type) {
  if (type == DataType::float16) return CUDNN_DATA_HALF;
  if (type == DataType::bfloat16) return CUDNN_DATA_BFLOAT16;
  throw LibraryFailure("cuDNN: no attention of this data type");
}

Operand transposed(Operand operand) {
  std::swap(operand.shape[2], operand.shape[3]);
  std::swap(operand.strides[2], operand.strides[3]);
  return operand;
}

Operand dense(std::vector<std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  return {std::move(shape), std::move(strides)};
}

Operand scalar() { return {{1, 1, 1, 1}, {1, 1, 1, 1}}; }

/// Adds tensors and operations to a graph. A tensor that an operation computes is virtual float32
/// unless the call says otherwise.
class GraphBuilder {
 public:
  explicit GraphBuilder(const CudnnLibrary& library) : library_(library) {}

  enum class Place { memory, none, by_value };

  CudnnDescriptor tensor(const Operand& operand, cudnnDataType_t type, Place place,
                         std::int64_t id) {
    CudnnDescriptor tensor(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, operand.shape);
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, operand.strides);
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, place == Place::none);
    tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, place == Place::by_value);
    tensor.finalize("a tensor of attention");
    return tensor;
  }
  CudnnDescriptor in_memory(Part part, const Operand& operand, cudnnDataType_t type) {
    return tensor(operand, type, Place::memory, static_cast<std::int64_t>(part));
  }
  CudnnDescriptor computed(const Operand& operand, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(operand, type, Place::none, ++last_virtual_);
  }
  CudnnDescriptor number(Part part) {
    return tensor(scalar(), CUDNN_DATA_FLOAT, Place::by_value, static_cast<std::int64_t>(part));
  }

  void multiply(const CudnnDescriptor& a, const CudnnDescriptor& b, const CudnnDescriptor& c) {
    CudnnDescriptor product(library_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    product.finalize("a product");
    CudnnDescriptor operation(library_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
    add(std::move(operation), "a product");
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const CudnnDescriptor* b = nullptr;     ///< the second operand
    const CudnnDescriptor* mask = nullptr;  ///< of a selection
    std::optional<std::int64_t> axis = {};
  };
  void pointwise(const Pointwise& with, const CudnnDescriptor& x, const CudnnDescriptor& y) {
    CudnnDescriptor function(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, with.mode);
    function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, with.type);
    if (with.axis) function.set(CUDNN_ATTR_POINTWISE_AXIS, *with.axis);
    function.finalize("a pointwise function");
    CudnnDescriptor operation(library_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (with.b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *with.b);
    if (with.mask != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *with.mask);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add(std::move(operation), "a pointwise operation");
  }
  /// Applies a pointwise operation. The result is virtual and of `shape`.
  CudnnDescriptor apply(const Pointwise& with, const CudnnDescriptor& x, const Operand& shape,
                        cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    CudnnDescriptor y = computed(shape, type);
    pointwise(with, x, y);
    return y;
  }
  CudnnDescriptor combine(cudnnPointwiseMode_t mode, const CudnnDescriptor& x,
                          const CudnnDescriptor& b, const Operand& shape,
                          cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return apply({.mode = mode, .b = &b}, x, shape, type);
  }

  void reduce(cudnnReduceTensorOp_t how, const CudnnDescriptor& x, const CudnnDescriptor& y) {
    CudnnDescriptor reduction(library_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
    reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    reduction.finalize("a reduction");
    CudnnDescriptor operation(library_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    add(std::move(operation), "a reduction");
  }

  void reshape(const CudnnDescriptor& x, const CudnnDescriptor& y) {
    CudnnDescriptor operation(library_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add(std::move(operation), "a reshape");
  }

  /// A tensor of ones and zeros: 1 with probability `kept`, drawn from a seed and an offset in
  /// memory.
  CudnnDescriptor random(double kept, const Operand& shape) {
    CudnnDescriptor generator(library_, CUDNN_BACKEND_RNG_DESCRIPTOR);
    generator.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION,
                  CUDNN_RNG_DISTRIBUTION_BERNOULLI);
    generator.set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, kept);
    generator.finalize("a random generator");
    CudnnDescriptor y = computed(shape);
    CudnnDescriptor operation(library_, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RNG_YDESC, y);
    operation.set(CUDNN_ATTR_OPERATION_RNG_DESC, generator);
    operation.set(CUDNN_ATTR_OPERATION_RNG_SEED, in_memory(Part::seed, scalar(), CUDNN_DATA_INT64));
    operation.set(CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
                  in_memory(Part::offset, scalar(), CUDNN_DATA_INT64));
    add(std::move(operation), "random numbers");
    return y;
  }

  CudnnDescriptor graph(const CudnnTarget& target) {
    CudnnDescriptor graph(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target.handle != nullptr) {
      graph.set_handle(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
    }
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const CudnnDescriptor>(operations_));
    graph.finalize("attention's operation graph");
    return graph;
  }

 private:
  void add(CudnnDescriptor operation, const char* what) {
    operation.finalize(what);
    operations_.push_back(std::move(operation));
  }

  const CudnnLibrary& library_;
  std::int64_t last_virtual_ = 100;  // above every AttentionTensor
  std::vector<CudnnDescriptor> operations_;
};

/// One call's shapes, and the parts of the graph that both directions have.
class Attention {
 public:
  Attention(const CudnnLibrary& library, const AttentionQuery& query, const CudnnTarget& target)
      : build_(library),
        query_(query),
        target_(target),
        type_(data_type(query.type)),
        heads_(query.query.shape[1]),
        scores_(dense({query.query.shape[0], heads_, query.query.shape[2], query.key.shape[2]})),
        rows_(dense({query.query.shape[0], heads_, query.query.shape[2], 1})) {}

  CudnnDescriptor forward() {
    const CudnnDescriptor q = build_.in_memory(Part::query, query_.query, type_);
    const CudnnDescriptor k = build_.in_memory(Part::key, transposed(query_.key), type_);
    const CudnnDescriptor scores = masked(scaled_scores(q, k, build_.number(Part::scale)));
    const bool drops = query_.dropout > 0;
    CudnnDescriptor weights = softmax(scores, drops ? CUDNN_DATA_FLOAT : type_);
    if (drops) {
      const CudnnDescriptor mask = build_.random(1 - query_.dropout, scores_);
      const CudnnDescriptor kept = build_.combine(CUDNN_POINTWISE_MUL, weights, mask, scores_);
      const CudnnDescriptor dropped =
          build_.combine(CUDNN_POINTWISE_MUL, kept, build_.number(Part::kept), scores_, type_);
      build_.multiply(dropped, build_.in_memory(Part::value, query_.value, type_),
                      build_.in_memory(Part::output, query_.output, type_));
      return build_.graph(target_);
    }
    build_.multiply(weights, build_.in_memory(Part::value, query_.value, type_),
                    build_.in_memory(Part::output, query_.output, type_));
    return build_.graph(target_);
  }

  CudnnDescriptor backward();

 private:
  CudnnDescriptor scaled_scores(const CudnnDescriptor& q, const CudnnDescriptor& k,
                                const CudnnDescriptor& scale) {
    const CudnnDescriptor product = build_.computed(scores_);
    build_.multiply(q, k, product);
    CudnnDescriptor scaled = build_.combine(CUDNN_POINTWISE_MUL, product, scale, scores_);
    if (query_.bias.shape.empty()) return scaled;
    return build_.combine(CUDNN_POINTWISE_ADD, scaled,
                          build_.in_memory(Part::bias, query_.bias, type_), scores_);
  }

  CudnnDescriptor masked(CudnnDescriptor scores) {
    if (!query_.causal) return scores;
    const auto index = [&](std::int64_t axis) {
      return build_.apply({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis}, scores, scores_,
                          CUDNN_DATA_INT32);
    };
    const CudnnDescriptor row = index(2);
    const CudnnDescriptor column = index(3);
    const CudnnDescriptor seen =
        build_.apply({.mode = CUDNN_POINTWISE_CMP_GE, .type = CUDNN_DATA_BOOLEAN, .b = &column},
                     row, scores_, CUDNN_DATA_BOOLEAN);
    const CudnnDescriptor lowest = build_.number(Part::hidden);
    return build_.apply({.mode = CUDNN_POINTWISE_BINARY_SELECT, .b = &lowest, .mask = &seen},
                        scores, scores_);
  }

  CudnnDescriptor softmax(const CudnnDescriptor& scores, cudnnDataType_t type) {
    const CudnnDescriptor most = build_.computed(rows_);
    build_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
    const CudnnDescriptor lowered = build_.combine(CUDNN_POINTWISE_SUB, scores, most, scores_);
    const CudnnDescriptor powers = build_.apply({.mode = CUDNN_POINTWISE_EXP}, lowered, scores_);
    const CudnnDescriptor sum = build_.computed(rows_);
    build_.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
    // Always computed; inference does not store it.
    const CudnnDescriptor log = build_.apply({.mode = CUDNN_POINTWISE_LOG}, sum, rows_);
    build_.pointwise({.mode = CUDNN_POINTWISE_ADD, .b = &log}, most,
                     query_.statistics ? build_.in_memory(Part::statistics, rows_, CUDNN_DATA_FLOAT)
                                       : build_.computed(rows_));
    return build_.combine(CUDNN_POINTWISE_DIV, powers, sum, scores_, type);
  }

  GraphBuilder build_;
  const AttentionQuery& query_;
  const CudnnTarget& target_;
  cudnnDataType_t type_;
  std::int64_t heads_;
  Operand scores_;
  Operand rows_;  // the shape of one number for each row of the scores
};

// Computes the weights again, from the scores and the rows' logsumexp; then, in this order: the sum
// of dy y over each row; dv from the weights and dy; the gradient of the scores from dy v^T and the
// row sums; dk from it and q; dq from it and k, summed in float32 and converted last.
CudnnDescriptor Attention::backward() {
  const Operand& q_shape = query_.query;
  const std::int64_t batch = q_shape.shape[0], queries = q_shape.shape[2],
                     keys = query_.key.shape[2];
  const CudnnDescriptor q = build_.in_memory(Part::query, q_shape, type_);
  const CudnnDescriptor k = build_.in_memory(Part::key, transposed(query_.key), type_);
  const CudnnDescriptor v = build_.in_memory(Part::value, transposed(query_.value), type_);
  const CudnnDescriptor out = build_.in_memory(Part::output, query_.output, type_);
  const CudnnDescriptor d_out = build_.in_memory(Part::gradient, query_.gradient, type_);
  const CudnnDescriptor statistics = build_.in_memory(Part::statistics, rows_, CUDNN_DATA_FLOAT);
  const CudnnDescriptor scale = build_.number(Part::scale);
  const bool drops = query_.dropout > 0;
  const auto times = [&](const CudnnDescriptor& a, const CudnnDescriptor& b) {
    return build_.combine(CUDNN_POINTWISE_MUL, a, b, scores_);
  };
  std::optional<CudnnDescriptor> mask, kept_scale;
  if (drops) {
    mask.emplace(build_.random(1 - query_.dropout, scores_));
    kept_scale.emplace(build_.number(Part::kept));
  }

  const CudnnDescriptor product = build_.combine(
      CUDNN_POINTWISE_MUL, d_out, out, dense({batch, heads_, queries, query_.value.shape[3]}));
  const CudnnDescriptor summed = build_.computed(rows_);
  build_.reduce(CUDNN_REDUCE_TENSOR_ADD, product, summed);
  const CudnnDescriptor softmax_sum = build_.in_memory(Part::row_sum, rows_, CUDNN_DATA_FLOAT);
  const CudnnDescriptor unscale = build_.number(Part::row_factor);
  build_.pointwise({.mode = CUDNN_POINTWISE_MUL, .b = &unscale}, summed, softmax_sum);

  const CudnnDescriptor scores = scaled_scores(q, k, scale);
  const CudnnDescriptor exponent =
      masked(build_.combine(CUDNN_POINTWISE_SUB, scores, statistics, scores_));
  const CudnnDescriptor weights = build_.apply({.mode = CUDNN_POINTWISE_EXP}, exponent, scores_);

  // The transposed weights and their gradient are views; nothing is moved.
  const Operand turned = transposed(scores_);
  const auto turned_around = [&](const CudnnDescriptor& x) {
    CudnnDescriptor y = build_.computed(turned, type_);
    build_.reshape(x, y);
    return y;
  };
  // dk or dv: made for each query head, then summed over the query heads that share a key head.
  const auto key_gradient = [&](Part part, const CudnnDescriptor& a, const CudnnDescriptor& b,
                                const Operand& operand) {
    const CudnnDescriptor result = build_.in_memory(part, operand, type_);
    if (operand.shape[1] == heads_) return build_.multiply(a, b, result);
    const CudnnDescriptor full =
        build_.computed(dense({batch, heads_, keys, operand.shape[3]}), type_);
    build_.multiply(a, b, full);
    build_.reduce(CUDNN_REDUCE_TENSOR_ADD, full, result);
  };
  if (drops) {
    key_gradient(Part::value_gradient, turned_around(times(times(weights, *mask), *kept_scale)),
                 d_out, query_.value);
  } else {
    key_gradient(Part::value_gradient, turned_around(weights), d_out, query_.value);
  }

  const CudnnDescriptor d_weights = build_.computed(scores_);
  build_.multiply(d_out, v, d_weights);
  const auto centred = [&](const CudnnDescriptor& x) {
    return times(build_.combine(CUDNN_POINTWISE_SUB, x, softmax_sum, scores_), weights);
  };
  const CudnnDescriptor d_scores =
      drops ? times(times(centred(times(d_weights, *mask)), *kept_scale), scale)
            : times(centred(d_weights), scale);
  key_gradient(Part::key_gradient, turned_around(d_scores), q, query_.key);

  const CudnnDescriptor keys_again = build_.computed(query_.key);
  build_.reshape(k, keys_again);
  const CudnnDescriptor d_query =
      build_.in_memory(Part::query_sum, dense(q_shape.shape), CUDNN_DATA_FLOAT);
  build_.multiply(d_scores, keys_again, d_query);
  build_.pointwise({.mode = CUDNN_POINTWISE_IDENTITY}, d_query,
                   build_.in_memory(Part::query_gradient, q_shape, type_));
  return build_.graph(target_);
}

}  // namespace

CudnnDescriptor attention_graph(const CudnnLibrary& library, const AttentionQuery& query,
                                const CudnnTarget& target) {
  Attention attention(library, query, target);
  return query.direction == Direction::forward ? attention.forward() : attention.backward();
}

}  // namespace stowage
