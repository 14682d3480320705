#include "estimator/runtime/runtime_process.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("each runtime is found by its name and has a process of its own") {
  for (const Runtime runtime : runtimes) {
    CAPTURE(to_string(runtime));
    CHECK(find_runtime(to_string(runtime)) == runtime);
    CHECK(is_planned(planned_in_place_of(runtime)));
    CHECK(kernel_set_of(planned_in_place_of(runtime)) == kernel_set_of(runtime));
    const RuntimeProcess& process = process_of(runtime);
    CHECK(process.runtime == runtime);
    CHECK((process.run != nullptr));
    CHECK((process.completes != nullptr));
  }
  CHECK_FALSE(find_runtime("torch"));
}

}  // namespace stowage
