// A pretended cuDNN on the host's memory, by its documentation. Descriptors keep the values that
// they are given. An execution computes a convolution by its definition, one product after the
// other, in double, rounded once, only in plain layouts; or a graph of other operations, one after
// the other (fake_graph.hpp). Any call can be made to fail.
#include "tests/gpu_probe/device/fake_driver/fake_cudnn.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_graph.hpp"

namespace {

using namespace stowage;  // NOLINT: the declarations are all that is used

constexpr auto failed = static_cast<cudnnStatus_t>(5000);
constexpr auto bad_parameter = static_cast<cudnnStatus_t>(2000);
constexpr std::int64_t engine_of_heuristics = 7;

FakeCudnn state;

using Handle = std::shared_ptr<Descriptor>;

Handle& at(void* descriptor) { return *static_cast<Handle*>(descriptor); }

bool fails() { return ++state.calls == state.fail_at; }

struct Tensor {
  std::int64_t id;
  std::vector<std::int64_t> shape, strides;
  body::Floats data{nullptr, body::FloatFormat::float32};
};

body::FloatFormat format_of(std::int64_t type) {
  return type == CUDNN_DATA_DOUBLE     ? body::FloatFormat::float64
         : type == CUDNN_DATA_HALF     ? body::FloatFormat::float16
         : type == CUDNN_DATA_BFLOAT16 ? body::FloatFormat::bfloat16
                                       : body::FloatFormat::float32;
}

struct Convolution {
  cudnnBackendDescriptorType_t kind;
  Tensor x, w, y;
  std::vector<std::int64_t> stride, padding, dilation;
};

struct Names {
  int convolution, x, w, y;
};

Names names_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

/// The plan's graph; null: it has none, or was not made for a handle.
const Descriptor* graph_of(const Descriptor& plan) {
  if (plan.pointers.count(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == 0) return nullptr;
  const Descriptor* const configuration = inner(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (configuration == nullptr) return nullptr;
  const Descriptor* const engine = inner(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE);
  if (engine == nullptr) return nullptr;
  const Descriptor* const graph = inner(*engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  const bool has_handle =
      graph != nullptr && graph->pointers.count(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) != 0;
  return has_handle ? graph : nullptr;
}

/// The operation's convolution; null: it is not described as it must be.
std::unique_ptr<Convolution> convolution_of(const Descriptor* operation) {
  const Names names = names_of(operation->type);
  auto made = std::make_unique<Convolution>();
  made->kind = operation->type;
  for (const auto& [name, tensor] :
       {std::pair(names.x, &made->x), std::pair(names.w, &made->w), std::pair(names.y, &made->y)}) {
    const Descriptor* const described = inner(*operation, name);
    if (described == nullptr) return nullptr;
    tensor->id = described->integers.at(CUDNN_ATTR_TENSOR_UNIQUE_ID).front();
    tensor->shape = described->integers.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
    tensor->strides = described->integers.at(CUDNN_ATTR_TENSOR_STRIDES);
    tensor->data.format = format_of(described->integers.at(CUDNN_ATTR_TENSOR_DATA_TYPE).front());
  }
  const Descriptor* const window = inner(*operation, names.convolution);
  if (window == nullptr) return nullptr;
  made->stride = window->integers.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  made->padding = window->integers.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  made->dilation = window->integers.at(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  return made;
}

std::int64_t offset(const Tensor& tensor, const std::vector<std::int64_t>& place) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < place.size(); ++i) sum += place[i] * tensor.strides[i];
  return sum;
}

/// Adds up every product of an element of x and one of w that belongs to an element of y. Each
/// direction sums products of two of the tensors into the third.
void convolve(const Convolution& c) {
  const bool to_x = c.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const bool to_w = c.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  const Tensor& result = to_x ? c.x : to_w ? c.w : c.y;
  std::int64_t count = 1;
  for (const std::int64_t size : result.shape) count *= size;
  std::vector<double> sums(static_cast<std::size_t>(count));  // plain layouts: offsets are dense
  const std::int64_t groups = c.x.shape[1] / c.w.shape[1];
  const std::int64_t outputs = c.w.shape[0] / groups;  // channels of a group
  each_place(c.y.shape, [&](const std::vector<std::int64_t>& y) {
    std::vector<std::int64_t> taps(c.w.shape.begin() + 1, c.w.shape.end());
    each_place(taps, [&](const std::vector<std::int64_t>& tap) {
      std::vector<std::int64_t> x{y[0], y[1] / outputs * c.w.shape[1] + tap[0]}, w{y[1], tap[0]};
      for (std::size_t i = 0; i < c.stride.size(); ++i) {
        const std::int64_t at = y[i + 2] * c.stride[i] - c.padding[i] + tap[i + 1] * c.dilation[i];
        if (at < 0 || at >= c.x.shape[i + 2]) return;
        x.push_back(at);
        w.push_back(tap[i + 1]);
      }
      const std::int64_t in_x = offset(c.x, x), in_w = offset(c.w, w), in_y = offset(c.y, y);
      double& sum = sums[static_cast<std::size_t>(to_x ? in_x : to_w ? in_w : in_y)];
      const double a = to_x ? c.y.data.at<double>(in_y) : c.x.data.at<double>(in_x);
      sum += a * (to_w ? c.y.data.at<double>(in_y) : c.w.data.at<double>(in_w));
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    result.data.set(static_cast<body::Index>(i), sums[i]);
  }
}

}  // namespace

extern "C" {

FakeCudnn* fakeCudnn() { return &state; }

std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_PRETENDED"; }
void cudnnGetLastErrorString(char* text, std::size_t size) {
  if (size > 0) *text = 0;
}

cudnnStatus_t cudnnCreate(void** handle) {
  if (fails()) return failed;
  ++state.live;
  ++state.handles;
  return *handle = &state, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(void*) { return --state.live, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(void*, void* stream) {
  return state.stream = stream, fails() ? failed : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, void** descriptor) {
  if (fails()) return failed;
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  ++state.live;
  *descriptor = new Handle(std::move(made));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(void* descriptor) {
  --state.live;
  delete static_cast<Handle*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(void* descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  if (fails()) return failed;
  Descriptor& of = *at(descriptor);
  if (of.finalized) return bad_parameter;
  for (std::int64_t i = 0; i < count; ++i) {
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const Handle& value = at(static_cast<void* const*>(values)[i]);
      if (!value->finalized) return bad_parameter;
      of.descriptors[name].push_back(value);
    } else if (type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE) {
      of.pointers[name].push_back(static_cast<void* const*>(values)[i]);
    } else if (type == CUDNN_TYPE_INT64) {
      of.integers[name].push_back(static_cast<const std::int64_t*>(values)[i]);
    } else if (type == CUDNN_TYPE_BOOLEAN) {
      of.integers[name].push_back(static_cast<const bool*>(values)[i] ? 1 : 0);
    } else if (type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_POINTWISE_MODE ||
               type == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE) {
      of.integers[name].push_back(static_cast<const int*>(values)[i]);
    } else {
      of.integers[name].push_back(0);  // words and real numbers: only that they were set
    }
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(void* descriptor) {
  if (fails()) return failed;
  Descriptor& of = *at(descriptor);
  if (of.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR) {
    if (state.engines_fail != 0) return failed;
    of.engine = of.integers.at(CUDNN_ATTR_ENGINE_GLOBAL_INDEX).front();
  }
  if (of.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {
    const auto knobs = of.descriptors.find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    state.knobs = knobs == of.descriptors.end() ? 0 : static_cast<long>(knobs->second.size());
  }
  if (of.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) ++state.asked;
  of.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(void* descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t wanted,
                                       std::int64_t* count, void* values) {
  if (fails()) return failed;
  const Handle& of = at(descriptor);
  *count = 1;
  switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<std::int64_t*>(values) = state.workspace;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = 0;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      if (wanted == 0) return CUDNN_STATUS_SUCCESS;
      const auto engine = std::make_shared<Descriptor>();
      engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      engine->finalized = true;
      engine->engine = engine_of_heuristics;
      engine->descriptors[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
          of->descriptors.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      Descriptor& configuration = *at(*static_cast<void**>(values));
      configuration.descriptors[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine};
      configuration.finalized = true;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      at(*static_cast<void**>(values)) = of->descriptors.at(name).front();
      return CUDNN_STATUS_SUCCESS;
    default:
      return bad_parameter;
  }
}

cudnnStatus_t cudnnBackendExecute(void*, void* plan, void* pack) {
  if (fails()) return failed;
  const Descriptor &of = *at(plan), &tensors = *at(pack);
  if (!of.finalized || !tensors.finalized) return bad_parameter;
  const Descriptor* const graph = graph_of(of);
  if (graph == nullptr) return bad_parameter;
  const auto& ids = tensors.integers.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto& data = tensors.pointers.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != data.size()) return bad_parameter;
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = data[i];
  const Descriptor* const operation = inner(*graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operation == nullptr) return bad_parameter;
  state.last_workspace = tensors.pointers.at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).front();
  state.last_engine =
      inner(*inner(of, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), CUDNN_ATTR_ENGINECFG_ENGINE)
          ->engine;
  ++state.executed;
  if (inner(*operation, names_of(operation->type).convolution) == nullptr) {
    return FakeGraph(*graph, std::move(memory)).run() ? CUDNN_STATUS_SUCCESS : bad_parameter;
  }
  const auto convolution = convolution_of(operation);
  if (convolution == nullptr) return bad_parameter;
  for (Tensor* tensor : {&convolution->x, &convolution->w, &convolution->y}) {
    tensor->data.data = memory[tensor->id];
    if (!tensor->data.is_there()) return bad_parameter;
  }
  convolve(*convolution);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
