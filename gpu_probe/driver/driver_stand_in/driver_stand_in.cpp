// A driver that is not there: cuDNN weighs its attention engines, which it compiles at run time,
// only where it can load libcuda.so.1, and then asks nothing of it; cuDNN 9.28 does not even start
// without one. This library bears that name
// for the loader (its soname); each of its functions says that it is a stub, as those of the stub
// do that NVIDIA ships with the toolkit for building. Loaded by driver_presence.cpp, and only where
// there is no driver. The names are those that cuDNN 9.19, 9.26 and 9.28 look up.

namespace {
constexpr int cuda_error_stub_library = 34;
}  // namespace

// Arguments are left where the caller put them.
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
