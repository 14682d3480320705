#include "gpu_probe/device/measured_libraries.hpp"

#include <array>
#include <initializer_list>

#include "gpu_probe/driver/found_libraries.hpp"
#include "gpu_probe/driver/library_failure.hpp"

namespace stowage {

namespace {

// Values of cuDNN's enumerations (cudnn_graph.h).
constexpr int nchw = 0, floats = 0, cross_correlation = 1, algorithm_1 = 1;

SharedLibrary open_cublas(const std::vector<std::string>& names) {
  if (const SharedLibrary library = first_that_loads(names)) return library;
  throw LibraryFailure(
      fmt::format("cuBLAS was not found ({})", names.empty() ? "no name" : names.front()));
}

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

/// cuDNN's functions for a convolution. (CudnnLibrary has those of the backend interface.)
struct ConvolutionFunctions {
  std::size_t (*version)() = nullptr;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*destroy_tensor)(void*) = nullptr;
  int (*set_tensor)(void*, int, int, int, int, int, int) = nullptr;
  int (*create_filter)(void**) = nullptr;
  int (*destroy_filter)(void*) = nullptr;
  int (*set_filter)(void*, int, int, int, int, int, int) = nullptr;
  int (*create_convolution)(void**) = nullptr;
  int (*destroy_convolution)(void*) = nullptr;
  int (*set_convolution)(void*, int, int, int, int, int, int, int, int) = nullptr;
  // Arguments of all three directions: the handle, two operands, the convolution, the result, the
  // algorithm.
  using Workspace = int (*)(void*, void*, void*, void*, void*, int, std::size_t*);
  using Run = int (*)(void*, const void*, void*, const void*, void*, const void*, void*, int, void*,
                      std::size_t, const void*, void*, void*);
  Workspace forward_workspace = nullptr, data_workspace = nullptr, filter_workspace = nullptr;
  Run forward = nullptr, data = nullptr, filter = nullptr;
};

ConvolutionFunctions convolution_functions(const SharedLibrary& library) {
  ConvolutionFunctions cudnn;
  const bool whole =
      library.bind("cudnnGetVersion", cudnn.version) && library.bind("cudnnCreate", cudnn.create) &&
      library.bind("cudnnDestroy", cudnn.destroy) &&
      library.bind("cudnnCreateTensorDescriptor", cudnn.create_tensor) &&
      library.bind("cudnnDestroyTensorDescriptor", cudnn.destroy_tensor) &&
      library.bind("cudnnSetTensor4dDescriptor", cudnn.set_tensor) &&
      library.bind("cudnnCreateFilterDescriptor", cudnn.create_filter) &&
      library.bind("cudnnDestroyFilterDescriptor", cudnn.destroy_filter) &&
      library.bind("cudnnSetFilter4dDescriptor", cudnn.set_filter) &&
      library.bind("cudnnCreateConvolutionDescriptor", cudnn.create_convolution) &&
      library.bind("cudnnDestroyConvolutionDescriptor", cudnn.destroy_convolution) &&
      library.bind("cudnnSetConvolution2dDescriptor", cudnn.set_convolution) &&
      library.bind("cudnnGetConvolutionForwardWorkspaceSize", cudnn.forward_workspace) &&
      library.bind("cudnnGetConvolutionBackwardDataWorkspaceSize", cudnn.data_workspace) &&
      library.bind("cudnnGetConvolutionBackwardFilterWorkspaceSize", cudnn.filter_workspace) &&
      library.bind("cudnnConvolutionForward", cudnn.forward) &&
      library.bind("cudnnConvolutionBackwardData", cudnn.data) &&
      library.bind("cudnnConvolutionBackwardFilter", cudnn.filter);
  if (!whole) throw LibraryFailure("cuDNN was not found, or lacks its convolutions");
  return cudnn;
}

}  // namespace

MeasuredCublas::MeasuredCublas(const std::vector<std::string>& names)
    : library_(open_cublas(names)),
      functions_(cublas_functions(library_)),
      handle_(create_library_object(functions_.create, functions_.destroy, "cublasCreate")) {}

void MeasuredCublas::use_workspace(DevicePointer workspace, std::size_t bytes) const {
  must_succeed(functions_.set_workspace(handle_.get(), pointer(workspace), bytes),
               "cublasSetWorkspace");
}

void MeasuredCublas::multiply(Precision precision, int n, DevicePointer a, DevicePointer b,
                              DevicePointer c) const {
  const float one = 1, zero = 0;
  const int type = precision == Precision::fp16 ? cublas::float16 : cublas::float32;
  const int compute =
      precision == Precision::tf32 ? cublas::compute_32_fast_tf32 : cublas::compute_32;
  must_succeed(functions_.gemm(handle_.get(), cublas::not_transposed, cublas::not_transposed, n, n,
                               n, &one, pointer(a), type, n, pointer(b), type, n, &zero, pointer(c),
                               type, n, compute, cublas::default_algorithm),
               "cublasGemmEx");
}

MeasuredCublas::Functions MeasuredCublas::cublas_functions(const SharedLibrary& library) {
  Functions functions;
  const bool whole = library.bind("cublasCreate_v2", functions.create) &&
                     library.bind("cublasDestroy_v2", functions.destroy) &&
                     library.bind("cublasSetWorkspace_v2", functions.set_workspace) &&
                     library.bind("cublasGemmEx", functions.gemm);
  if (!whole) throw LibraryFailure("cuBLAS is too old");
  return functions;
}

// Creates the descriptors, then runs each of the three directions: asks for its workspace, which
// lies in `memory` behind the two images and the filter, and queues it.
std::string run_convolutions(const SharedLibrary& library, DevicePointer memory) {
  constexpr int batch = 8, channels = 64, side = 32, window = 3;
  constexpr std::size_t image_bytes = sizeof(float) * batch * channels * side * side;
  constexpr std::size_t filter_bytes = sizeof(float) * channels * channels * window * window;
  const ConvolutionFunctions cudnn = convolution_functions(library);
  const LibraryObject handle = create_library_object(cudnn.create, cudnn.destroy, "cudnnCreate");
  const LibraryObject image = create_library_object(cudnn.create_tensor, cudnn.destroy_tensor,
                                                    "cudnnCreateTensorDescriptor");
  const LibraryObject filter = create_library_object(cudnn.create_filter, cudnn.destroy_filter,
                                                     "cudnnCreateFilterDescriptor");
  const LibraryObject convolution = create_library_object(
      cudnn.create_convolution, cudnn.destroy_convolution, "cudnnCreateConvolutionDescriptor");
  must_succeed(cudnn.set_tensor(image.get(), nchw, floats, batch, channels, side, side),
               "cudnnSetTensor4dDescriptor");
  must_succeed(cudnn.set_filter(filter.get(), floats, nchw, channels, channels, window, window),
               "cudnnSetFilter4dDescriptor");
  must_succeed(
      cudnn.set_convolution(convolution.get(), 1, 1, 1, 1, 1, 1, cross_correlation, floats),
      "cudnnSetConvolution2dDescriptor");

  struct Operand {
    void* descriptor;
    void* data;
  };
  const Operand x{image.get(), pointer(memory)};
  const Operand y{image.get(), pointer(memory + image_bytes)};
  const Operand w{filter.get(), pointer(memory + 2 * image_bytes)};
  void* const workspace = pointer(memory + 2 * image_bytes + filter_bytes);
  constexpr std::size_t room = measured_convolution_bytes - 2 * image_bytes - filter_bytes;
  const float one = 1, zero = 0;
  struct Direction {
    ConvolutionFunctions::Workspace workspace;
    ConvolutionFunctions::Run run;
    Operand first, second, result;
    const char* name;
  };
  for (const Direction& direction :
       {Direction{cudnn.forward_workspace, cudnn.forward, x, w, y, "cudnnConvolutionForward"},
        Direction{cudnn.data_workspace, cudnn.data, w, y, x, "cudnnConvolutionBackwardData"},
        Direction{cudnn.filter_workspace, cudnn.filter, x, y, w,
                  "cudnnConvolutionBackwardFilter"}}) {
    std::size_t wanted = 0;
    // The functions that ask for a size take the convolution before the result, as the runs do.
    must_succeed(
        direction.workspace(handle.get(), direction.first.descriptor, direction.second.descriptor,
                            convolution.get(), direction.result.descriptor, algorithm_1, &wanted),
        direction.name);
    if (wanted > room)
      throw LibraryFailure(fmt::format("{} wants {} bytes", direction.name, wanted));
    must_succeed(direction.run(handle.get(), &one, direction.first.descriptor, direction.first.data,
                               direction.second.descriptor, direction.second.data,
                               convolution.get(), algorithm_1, workspace, wanted, &zero,
                               direction.result.descriptor, direction.result.data),
                 direction.name);
  }
  return library_version_text(cudnn.version());
}

}  // namespace stowage
