#include "gpu_probe/cudnn/operation_graph.hpp"

#include <utility>

namespace stowage {
namespace {

using Direction = ConvolutionCall::Direction;

cudnnDataType_t data_type(DataType type) {
  switch (type) {
    case DataType::float16:
      return CUDNN_DATA_HALF;
    case DataType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DataType::float64:
      return CUDNN_DATA_DOUBLE;
    case DataType::float32:
      return CUDNN_DATA_FLOAT;
    default:
      throw LibraryFailure("cuDNN: no convolutions of this data type");
  }
}

cudnnDataType_t compute_type(DataType type) {
  return type == DataType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape, TensorLayout layout) {
  // The axes, from the innermost to the outermost.
  std::vector<std::size_t> order;
  if (layout == TensorLayout::channels_last) order.push_back(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i != 1 || layout == TensorLayout::contiguous) order.push_back(i);
  }
  std::vector<std::int64_t> strides(shape.size(), 1);
  std::int64_t stride = 1;
  for (const std::size_t axis : order) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

CudnnDescriptor tensor(const CudnnLibrary& library, std::int64_t id, const ConvolutionQuery& query,
                       const std::vector<std::int64_t>& shape) {
  CudnnDescriptor tensor(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(query.type));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);  // as PyTorch states it
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides_of(shape, query.layout));
  tensor.finalize("a tensor");
  return tensor;
}

CudnnDescriptor convolution(const CudnnLibrary& library, const ConvolutionQuery& query) {
  CudnnDescriptor convolution(library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute_type(query.type));
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                  static_cast<std::int64_t>(query.stride.size()));
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, query.stride);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, query.padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, query.padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, query.dilation);
  convolution.finalize("a convolution");
  return convolution;
}

struct OperationAttributes {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

OperationAttributes operation_attributes(Direction direction) {
  switch (direction) {
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Direction::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

}  // namespace

CudnnDescriptor convolution_graph(const CudnnLibrary& library, const ConvolutionQuery& query,
                                  const CudnnTarget& target) {
  const OperationAttributes attributes = operation_attributes(query.direction);
  CudnnDescriptor operation(library, attributes.type);
  operation.set(attributes.convolution, convolution(library, query));
  operation.set(attributes.x, tensor(library, id_of_x, query, query.x));
  operation.set(attributes.w, tensor(library, id_of_w, query, query.w));
  operation.set(attributes.y, tensor(library, id_of_y, query, query.y));
  if (query.type == DataType::float64) {
    operation.set(attributes.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set(attributes.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(attributes.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(attributes.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  operation.finalize("an operation");
  CudnnDescriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr) {
    graph.set_handle(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  }
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize("an operation graph");
  return graph;
}

}  // namespace stowage
