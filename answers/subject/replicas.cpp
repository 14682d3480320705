#include "answers/subject/replicas.hpp"

#include <algorithm>

namespace stowage {

std::int64_t replica_count(const CheckSettings& settings) {
  return std::max<std::int64_t>(1, std::ssize(settings.tensorflow.logical_devices));
}

std::int64_t replica_batch(std::int64_t batch, const CheckSettings& settings) {
  const std::int64_t replicas = replica_count(settings);
  return (batch + replicas - 1) / replicas;
}

}  // namespace stowage
