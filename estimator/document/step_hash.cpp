#include "estimator/document/step_hash.hpp"

#include <fmt/format.h>

#include <iterator>

#include "estimator/base/hash.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

std::string step_hash(const SizedStep& step) {
  std::string text = fmt::format("batch {}\n", step.batch);
  for (const Bytes bytes : step.storage_bytes) {
    fmt::format_to(std::back_inserter(text), "{}\n", bytes.count());
  }
  return hash_text(text + canonical_text(*step.graph));
}

}  // namespace stowage
