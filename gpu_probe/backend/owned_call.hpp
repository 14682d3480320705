// OwnedKernelCall: a kernel call with copies of its attributes and lists of arguments, for a lane
// that runs it later. The tensors' bytes are not copied.
#pragma once

#include <vector>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

class OwnedKernelCall {
 public:
  explicit OwnedKernelCall(const KernelCall& call)
      : reads_(call.reads.begin(), call.reads.end()),
        writes_(call.writes.begin(), call.writes.end()),
        attributes_(call.attributes != nullptr ? *call.attributes : Attributes{}),
        call_(call) {
    call_.reads = reads_;
    call_.writes = writes_;
    call_.attributes = &attributes_;
  }
  OwnedKernelCall(const OwnedKernelCall&) = delete;
  OwnedKernelCall& operator=(const OwnedKernelCall&) = delete;

  [[nodiscard]] const KernelCall& get() const { return call_; }

 private:
  std::vector<TensorArgument> reads_, writes_;
  Attributes attributes_;
  KernelCall call_;
};

}  // namespace stowage
