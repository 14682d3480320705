#include "estimator/base/parallel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace stowage {

TEST_CASE("each piece of work is done once, whatever the machine") {
  for (const std::size_t count : {0, 1, 2, 7, 1'000}) {
    std::vector<std::atomic<int>> calls(count);
    for_each_index(count, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& one : calls) CHECK(one == 1);
  }
  CHECK(thread_count() >= 1);
}

TEST_CASE("work within work finds the threads taken and is done all the same") {
  std::atomic<int> calls = 0;
  for_each_index(20, [&](std::size_t) { for_each_index(30, [&](std::size_t) { ++calls; }); });
  CHECK(calls == 600);
}

TEST_CASE("what is thrown arrives, of the lowest index, after all have ended") {
  std::atomic<int> calls = 0;
  const auto work = [&](std::size_t i) {
    ++calls;
    if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
  };
  for (int round = 0; round < 20; ++round) {
    calls = 0;
    CHECK_THROWS_WITH_AS(for_each_index(50, work), "3", std::runtime_error);
    CHECK(calls == 50);
  }
}

}  // namespace stowage
