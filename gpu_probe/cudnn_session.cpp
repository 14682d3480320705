#include "gpu_probe/cudnn_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gpu_probe/cudnn_library.hpp"

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
      throw CudnnFailure("cuDNN: no convolutions of this data type");
  }
}

cudnnDataType_t compute_type(DataType type) {
  return type == DataType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

CudnnDescriptor tensor(const CudnnLibrary& library, std::int64_t id, DataType type,
                       const std::vector<std::int64_t>& shape) {
  CudnnDescriptor tensor(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(type));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);  // as PyTorch states it
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, contiguous_strides(shape));
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

CudnnDescriptor operation_graph(const CudnnLibrary& library, const ConvolutionQuery& query) {
  const OperationAttributes attributes = operation_attributes(query.direction);
  CudnnDescriptor operation(library, attributes.type);
  operation.set(attributes.convolution, convolution(library, query));
  operation.set(attributes.x, tensor(library, 'x', query.type, query.x));
  operation.set(attributes.w, tensor(library, 'w', query.type, query.w));
  operation.set(attributes.y, tensor(library, 'y', query.type, query.y));
  if (query.type == DataType::float64) {
    operation.set(attributes.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set(attributes.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(attributes.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(attributes.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  operation.finalize("an operation");
  CudnnDescriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize("an operation graph");
  return graph;
}

class DescribedDeviceSession final : public CudnnSession {
 public:
  DescribedDeviceSession(const CudnnLibrary& library, const std::string& device)
      : library_(library), device_(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
    device_.set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, device);
    device_.finalize("the card's device text");
  }

  Result<std::vector<Engine>> engines(const ConvolutionQuery& query) override {
    try {
      const CudnnDescriptor graph = operation_graph(library_, query);
      std::vector<Engine> engines;
      for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
        // FALLBACK takes ten times as long and is there for engines with little workspace.
        if (std::ranges::find(engines, Bytes(0), &Engine::workspace) != engines.end()) break;
        for (const CudnnDescriptor& configuration : configurations(graph, mode)) {
          add(configuration, engines);
        }
      }
      return engines;
    } catch (const CudnnFailure& error) {
      return failure(error.what());
    }
  }

 private:
  std::vector<CudnnDescriptor> configurations(const CudnnDescriptor& graph,
                                              cudnnBackendHeurMode_t mode) const {
    CudnnDescriptor heuristics(library_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_);
    heuristics.finalize("a heuristic query");
    return heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                      heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS));
  }

  // Building is what takes time, so one configuration a workspace size is built. What cannot be
  // built is passed over, as the runtimes do.
  void add(const CudnnDescriptor& configuration, std::vector<Engine>& engines) const {
    const Bytes stated(
        configuration.get_integer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
    if (std::ranges::find(engines, stated, &Engine::workspace) != engines.end()) return;
    CudnnDescriptor plan(library_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_);
    if (!plan.try_finalize()) return;
    const std::int64_t workspace =
        plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
    engines.push_back({name(configuration), Bytes(workspace)});
  }

  // "cudnn 9.19.0 eng34 k2=2 k13=0": the engine's index, then its knobs, as cuDNN numbers them.
  std::string name(const CudnnDescriptor& configuration) const {
    CudnnDescriptor engine(library_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    configuration.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    std::string name =
        fmt::format("cudnn {} eng{}", library_.version(),
                    engine.get_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64));
    for (const CudnnDescriptor& knob : configuration.get_descriptors(
             CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
             CUDNN_KNOB_TYPE_COUNTS)) {
      name += fmt::format(" k{}={}",
                          knob.get_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE),
                          knob.get_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
    }
    return name;
  }

  const CudnnLibrary& library_;
  CudnnDescriptor device_;
};

}  // namespace

Result<std::unique_ptr<CudnnSession>> open_cudnn_session(const std::string& device) {
  const auto library = cudnn_library();
  if (!library) return tl::unexpected(library.error());
  try {
    return std::make_unique<DescribedDeviceSession>(**library, device);
  } catch (const CudnnFailure& error) {
    return failure(error.what());
  }
}

std::string cudnn_asker() { return STOWAGE_CUDNN_ASKER; }

Result<std::string> cudnn_version() {
  return cudnn_library().map([](const CudnnLibrary* library) { return library->version(); });
}

}  // namespace stowage
