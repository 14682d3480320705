// A stand-in for the CUDA driver on machines without one.
//
// cuDNN compiles its attention engines at run time, and tells their workspaces only where it can
// load libcuda.so.1, of which it then asks nothing. cuDNN 9.28 does not even start without it. This
// library has that name for the loader (its soname). Each of its functions returns the error of a
// stub, as those of the stub library do that NVIDIA ships for building. driver_presence.cpp loads
// it, only where there is no driver. The names are those that cuDNN 9.19, 9.26 and 9.28 look up.

namespace {
constexpr int cuda_error_stub_library = 34;
}  // namespace

// The arguments are not read.
#define STOWAGE_ABSENT(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return cuda_error_stub_library; }

// clang-format off
STOWAGE_ABSENT(cuCtxGetCurrent)
STOWAGE_ABSENT(cuCtxGetDevice)
STOWAGE_ABSENT(cuCtxGetLimit)
STOWAGE_ABSENT(cuCtxPopCurrent)
STOWAGE_ABSENT(cuCtxPushCurrent)
STOWAGE_ABSENT(cuDeviceGet)
STOWAGE_ABSENT(cuDeviceGetAttribute)
STOWAGE_ABSENT(cuDeviceGetCount)
STOWAGE_ABSENT(cuDevicePrimaryCtxRelease)
STOWAGE_ABSENT(cuDevicePrimaryCtxReset)
STOWAGE_ABSENT(cuDevicePrimaryCtxRetain)
STOWAGE_ABSENT(cuDriverGetVersion)
STOWAGE_ABSENT(cuFuncGetAttribute)
STOWAGE_ABSENT(cuFuncSetAttribute)
STOWAGE_ABSENT(cuGetErrorName)
STOWAGE_ABSENT(cuGetErrorString)
STOWAGE_ABSENT(cuInit)
STOWAGE_ABSENT(cuKernelGetAttribute)
STOWAGE_ABSENT(cuKernelGetFunction)
STOWAGE_ABSENT(cuKernelSetAttribute)
STOWAGE_ABSENT(cuLaunchCooperativeKernel)
STOWAGE_ABSENT(cuLaunchKernel)
STOWAGE_ABSENT(cuLaunchKernelEx)
STOWAGE_ABSENT(cuLibraryGetKernel)
STOWAGE_ABSENT(cuLibraryLoadData)
STOWAGE_ABSENT(cuLibraryLoadFromFile)
STOWAGE_ABSENT(cuLibraryUnload)
STOWAGE_ABSENT(cuLinkAddData)
STOWAGE_ABSENT(cuLinkAddData_v2)
STOWAGE_ABSENT(cuLinkAddFile_v2)
STOWAGE_ABSENT(cuLinkComplete)
STOWAGE_ABSENT(cuLinkCreate)
STOWAGE_ABSENT(cuLinkCreate_v2)
STOWAGE_ABSENT(cuLinkDestroy)
STOWAGE_ABSENT(cuMemcpyDtoH_v2)
STOWAGE_ABSENT(cuModuleGetFunction)
STOWAGE_ABSENT(cuModuleGetGlobal_v2)
STOWAGE_ABSENT(cuModuleLoadData)
STOWAGE_ABSENT(cuModuleLoadDataEx)
STOWAGE_ABSENT(cuModuleLoadFatBinary)
STOWAGE_ABSENT(cuModuleUnload)
STOWAGE_ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
STOWAGE_ABSENT(cuOccupancyMaxPotentialClusterSize)
STOWAGE_ABSENT(cuStreamGetCtx)
STOWAGE_ABSENT(cuStreamGetGreenCtx)
STOWAGE_ABSENT(cuStreamSynchronize)
STOWAGE_ABSENT(cuTensorMapEncodeIm2col)
STOWAGE_ABSENT(cuTensorMapEncodeTiled)
STOWAGE_ABSENT(cuThreadExchangeStreamCaptureMode)
// clang-format on
