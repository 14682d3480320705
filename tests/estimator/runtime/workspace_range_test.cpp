// Whether workspaces that are said to leave the allocator alike do.
#include "estimator/runtime/workspace_range.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

const AllocatorSettings plain;

}  // namespace

TEST_CASE("where the cache served a workspace, all serve that it has room for, and none") {
  WorkspaceRange range;
  range.note(3_MiB, {.small = 512_KiB, .large = 9_MiB}, plain);
  range.note(3_MiB, {.small = 1_MiB, .large = 7_MiB}, plain);
  CHECK(range.contains(0_B, plain));
  CHECK(range.contains(7_MiB, plain));
  CHECK_FALSE(range.contains(7_MiB + 1_B, plain));
  CHECK(range.contains(512_KiB, plain));  // of the other pool
  CHECK_FALSE(range.contains(513_KiB, plain));
}

TEST_CASE("where the driver was asked, those serve for which it is asked for as much") {
  WorkspaceRange range;
  range.note(75_MiB, {.small = 1_MiB, .large = 9_MiB}, plain);
  CHECK(range.contains(76_MiB, plain));  // a segment of 76 MiB
  CHECK(range.contains(74_MiB + 1_B, plain));
  CHECK_FALSE(range.contains(74_MiB, plain));
  CHECK_FALSE(range.contains(77_MiB, plain));
  CHECK_FALSE(range.contains(0_B, plain));
  WorkspaceRange middling;
  middling.note(5_MiB, {.small = 1_MiB, .large = 2_MiB}, plain);
  CHECK(middling.contains(9_MiB, plain));        // a segment of 20 MiB
  CHECK_FALSE(middling.contains(2_MiB, plain));  // which the cache would serve
  CHECK(middling.contains(20_MiB, plain));
  CHECK_FALSE(middling.contains(12_MiB, plain));
  CHECK_FALSE(middling.contains(1_MiB, plain));
}

TEST_CASE("a call that was served after one that was not asks for both") {
  WorkspaceRange range;
  range.note(5_MiB, {.small = 0_B, .large = 2_MiB}, plain);
  range.note(5_MiB, {.small = 0_B, .large = 8_MiB}, plain);
  CHECK(range.contains(8_MiB, plain));
  CHECK_FALSE(range.contains(9_MiB, plain));
  CHECK_FALSE(range.contains(2_MiB, plain));
}

TEST_CASE("a call that never came goes alike with any workspace") {
  CHECK(WorkspaceRange().contains(0_B, plain));
  CHECK(WorkspaceRange().contains(75_MiB, plain));
}

}  // namespace stowage
