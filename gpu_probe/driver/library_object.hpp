// LibraryObject: owns a handle or a descriptor of one of NVIDIA's libraries.
//
// Such an object is an address without a type: one function of the library creates it, another
// destroys it. (cuDNN's backend descriptors have values as well: CudnnDescriptor.)
#pragma once

#include <memory>
#include <string_view>

#include "gpu_probe/driver/library_failure.hpp"

namespace stowage {

using LibraryObject = std::unique_ptr<void, int (*)(void*)>;

/// The object that `create(void**)` makes. Throws LibraryFailure, which names `call`, where the
/// status that it returns is not 0.
template <typename Create>
[[nodiscard]] LibraryObject create_library_object(Create create, int (*destroy)(void*),
                                                  std::string_view call) {
  void* object = nullptr;
  const int status = create(&object);
  LibraryObject owned(object, destroy);
  must_succeed(status, call);
  return owned;
}

}  // namespace stowage
