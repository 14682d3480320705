#include "gpu_probe/cudnn/handle.hpp"

namespace stowage {

Result<std::unique_ptr<CudnnHandle>> CudnnHandle::open(const CudnnLibrary& library) {
  try {
    return std::make_unique<CudnnHandle>(library);
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

CudnnHandle::CudnnHandle(const CudnnLibrary& library) : library_(library) {
  library.check(library.create_handle(&handle_), "cudnnCreate");
}

CudnnHandle::~CudnnHandle() { library_.destroy_handle(handle_); }

void CudnnHandle::execute(const CudnnDescriptor& plan, const CudnnDescriptor& tensors,
                          void* stream) const {
  library_.check(library_.set_stream(handle_, stream), "cudnnSetStream");
  library_.check(library_.execute(handle_, plan.get(), tensors.get()), "cudnnBackendExecute");
}

}  // namespace stowage
