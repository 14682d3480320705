#include "gpu_probe/driver/cuda_functions.hpp"

#include "gpu_probe/driver/driver_presence.hpp"

namespace stowage {

CudaDriver::CudaDriver(const std::string& name) {
  const SharedLibrary library(name);
  if (!library) {
    const char* const why = dlerror();
    absence_ = why != nullptr ? why : name + " was not found";
  } else if (is_driver_stand_in(library)) {
    absence_ = name + " was not found";
  }
  if (!is_there()) return;
  const auto bind = [&](const char* symbol, auto& function, std::string* lacking) {
    if (!library.bind(symbol, function) && lacking && lacking->empty()) *lacking = symbol;
  };
#define STOWAGE_BIND_QUERY(name, symbol, arguments) bind(#symbol, functions_.name, &lacking_query_);
#define STOWAGE_BIND_CALL(name, symbol, arguments) bind(#symbol, functions_.name, &lacking_call_);
#define STOWAGE_BIND_LANE_CALL(name, symbol, arguments) \
  bind(#symbol, functions_.name, &lacking_lane_call_);
#define STOWAGE_BIND_LATER(name, symbol, arguments) bind(#symbol, functions_.name, nullptr);
  STOWAGE_CUDA_QUERIES(STOWAGE_BIND_QUERY)
  STOWAGE_CUDA_CALLS(STOWAGE_BIND_CALL)
  STOWAGE_CUDA_LANE_CALLS(STOWAGE_BIND_LANE_CALL)
  STOWAGE_LATER_CUDA_FUNCTIONS(STOWAGE_BIND_LATER)
#undef STOWAGE_BIND_QUERY
#undef STOWAGE_BIND_CALL
#undef STOWAGE_BIND_LANE_CALL
#undef STOWAGE_BIND_LATER
}

}  // namespace stowage
