#include "estimator/step/script_holds.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "tests/support/described_model.hpp"
#include "tests/support/one_layer.hpp"

namespace stowage {

TEST_CASE("script holds are found by storage, and an empty hold has no entry") {
  ScriptHolds holds;
  holds.set(StorageId{5}, {.held_to_end = true});
  holds.set(StorageId{2}, {.replaced_after = NodeId{7}});
  holds.set(StorageId{3}, {});
  CHECK(std::distance(holds.begin(), holds.end()) == 2);
  CHECK(holds.of(StorageId{2}).replaced_after == NodeId{7});
  CHECK(holds.of(StorageId{5}).outlives_step());
  CHECK(holds.of(StorageId{3}) == ScriptHold());
  holds.update(StorageId{5}, [](ScriptHold& hold) { hold.held_to_end = false; });
  CHECK(holds.begin()->storage == StorageId{2});
  CHECK(std::distance(holds.begin(), holds.end()) == 1);
}

TEST_CASE("script holds follow their nodes to other numbers") {
  ScriptHolds holds;
  for (const auto& [storage, node] : {std::pair{0, 0}, {13, 3}, {14, 4}}) {
    holds.set(StorageId{storage}, {.loaded_before = NodeId{node}});
  }
  holds.renumber_nodes([](NodeId& id) { id.value *= 2; });
  CHECK(holds.of(StorageId{0}).loaded_before == NodeId{0});
  CHECK(holds.of(StorageId{3}) == ScriptHold());
  CHECK(holds.of(StorageId{13}).loaded_before == NodeId{6});
  ScriptHolds::Cursor cursor(holds);
  CHECK_FALSE(cursor.advance_to(StorageId{12}).loaded_before.valid());
  CHECK(cursor.advance_to(StorageId{14}).loaded_before == NodeId{8});
  holds.drop_from(StorageId{14});
  CHECK(std::distance(holds.begin(), holds.end()) == 2);
}

TEST_CASE("only the steps of an eager script have script holds") {
  const auto model = testing::described(testing::one_layer);
  CHECK_FALSE(testing::lowered(model, {.kernels = KernelSet::pytorch})->script_holds.empty());
  CHECK(testing::lowered(model, {.kernels = KernelSet::stowage})->script_holds.empty());
}

}  // namespace stowage
