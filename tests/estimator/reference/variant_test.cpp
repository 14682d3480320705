// Steps in other precisions, and loops written in other ways (accumulation, gradients that
// zero_grad keeps, checkpointed blocks, optimizers one parameter at a time or fused), or with
// channels innermost, against PyTorch. One subcase a file: -sc="resnet18*".
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/estimator/reference/known_differences.hpp"
#include "tests/estimator/reference/reference_step.hpp"
#include "tests/estimator/reference/step_comparison.hpp"

namespace stowage::reference {

namespace {

bool is_variant(const ReferenceModel& reference) { return !is_plain(reference); }

Multiset saved_beyond_the_state(const SizedStep& step) {
  Multiset sizes;
  std::set<StorageId> seen;
  for (const SavedTensor& saved : step.graph->saved) {
    if (!seen.insert(saved.storage).second) continue;
    const StorageClass kind = step.graph->storage(saved.storage).storage_class;
    if (kind == StorageClass::parameter || kind == StorageClass::buffer) continue;
    ++sizes[step.bytes(saved.storage).count()];
  }
  return sizes;
}

}  // namespace

TEST_CASE("other precisions and loops are compared") {
  const auto& models = reference_models();
  CHECK(std::count_if(models.begin(), models.end(), is_variant) >= 119);
}

TEST_CASE(
    "in other precisions and layouts what is saved is what PyTorch saves, storage by storage") {
  for (const ReferenceModel& reference : reference_models()) {
    // Of checkpointed steps the reference has the peaks alone.
    if (!is_variant(reference) || reference.saved.empty()) continue;
    SUBCASE(reference.file.c_str()) {
      Multiset theirs;
      for (const SavedStorages& row : accounted_saved(reference).saved) {
        if (row.kind == "parameter" || row.kind == "buffer") continue;
        theirs[row.bytes] += row.count;
      }
      const Multiset ours =
          saved_beyond_the_state(traced_step(traced_model(reference), reference, "sgd"));
      CHECK(surplus(ours, theirs) == "");
      CHECK(surplus(theirs, ours) == "");
    }
  }
}

TEST_CASE(
    "in other precisions, layouts and loops the peak of each phase is PyTorch's, to the byte") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_variant(reference)) continue;
    SUBCASE(reference.file.c_str()) { compare_peaks(reference); }
  }
}

}  // namespace stowage::reference
