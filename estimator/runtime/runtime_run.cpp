#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

ReservedBytes RuntimeRun::reserved() const {
  ReservedBytes sum;
  for (const ProcessReplay& replica : replicas) {
    sum.loaded += replica.loaded.reserved;
    sum.first_step += replica.first_step.reserved;
    sum.most += replica.reserved;
  }
  return sum;
}

}  // namespace stowage
