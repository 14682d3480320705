// A kernel call with all that it points to, but for the tensors' bytes: for a lane that runs it
// later.
#pragma once

#include <vector>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

class KeptCall {
 public:
  explicit KeptCall(const KernelCall& call)
      : reads_(call.reads.begin(), call.reads.end()),
        writes_(call.writes.begin(), call.writes.end()),
        attributes_(call.attributes != nullptr ? *call.attributes : Attributes{}),
        call_(call) {
    call_.reads = reads_;
    call_.writes = writes_;
    call_.attributes = &attributes_;
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;

  [[nodiscard]] const KernelCall& get() const { return call_; }

 private:
  std::vector<TensorArgument> reads_, writes_;
  Attributes attributes_;
  KernelCall call_;
};

}  // namespace stowage
