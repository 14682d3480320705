#include "estimator/base/batch.hpp"

#include <cassert>

#include "estimator/base/bytes.hpp"

namespace stowage {

std::optional<std::int64_t> micro_batch_of(WholeBatch whole, std::int64_t parts) {
  assert(parts > 0);
  if (whole.samples % parts != 0) return std::nullopt;
  return whole.samples / parts;
}

WholeBatch whole_batch_of(std::int64_t micro_batch, std::int64_t parts) {
  return WholeBatch(checked_multiply(micro_batch, parts));
}

}  // namespace stowage
