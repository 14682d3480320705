// Groups of threads: the functions by which they exchange values, with one thread and with many.
#include "gpu_probe/kernels/bodies/group.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "gpu_probe/kernels/bodies/planes.hpp"

namespace stowage::test {
namespace {

template <class Work>
void in_group(body::Index size, Work work) {
  if (size == 1) return work(body::Group{});
  body::Group::Shared shared(size);
  std::vector<std::thread> threads;
  for (body::Index rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { work(body::Group(rank, size, shared)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("a group combines the values of all its threads, for each of them") {
  for (const body::Index size : {1, 4, 64}) {
    std::vector<double> sums(static_cast<std::size_t>(size)), largest(sums.size());
    in_group(size, [&](const body::Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      sums[rank] = body::sum_of(group, static_cast<double>(group.rank() + 1));
      largest[rank] = group.combined(static_cast<double>(group.rank()), body::Maximum{});
    });
    for (const double sum : sums) CHECK(2 * sum == static_cast<double>(size * (size + 1)));
    for (const double value : largest) CHECK(value == static_cast<double>(size - 1));
  }
}

TEST_CASE("the maximum of a group that has a NaN is NaN") {
  in_group(4, [&](const body::Group& group) {
    const double value = group.rank() == 2 ? __builtin_nan("") : 1.0;
    const double largest = group.combined(value, body::Maximum{});
    CHECK(largest != largest);
  });
}

TEST_CASE("a group sums up columns, whatever its size and theirs") {
  constexpr body::Index rows = 37;
  for (const body::Index columns : {1, 5, 32, 33, 70}) {
    for (const body::Index size : {1, 4, 32, 64, 96}) {
      std::vector<long> sums(static_cast<std::size_t>(columns), -1);
      for (body::Index tile = 0; tile < body::tiles_of(columns); ++tile) {
        in_group(size, [&](const body::Group& group) {
          body::sum_columns<long>(
              group, tile, columns, rows,
              [](body::Index row, body::Index column) { return row * 1000 + column; },
              [&](body::Index column, long sum) { sums[static_cast<std::size_t>(column)] = sum; });
        });
      }
      for (body::Index column = 0; column < columns; ++column) {
        CAPTURE(columns);
        CAPTURE(size);
        CHECK(sums[static_cast<std::size_t>(column)] ==
              rows * (rows - 1) / 2 * 1000 + rows * column);
      }
    }
  }
}

TEST_CASE("a group visits each element of a channel once") {
  for (const body::Planes planes : {body::Planes{3, 2, 5}, body::Planes{7, 4, 1},
                                    body::Planes{1, 1, 100}, body::Planes{2, 3, 0}}) {
    for (const body::Index size : {1, 4, 64}) {
      std::vector<int> visits(
          static_cast<std::size_t>(planes.images * planes.channels * planes.area));
      in_group(size, [&](const body::Group& group) {
        body::each_of_channel(group, planes, 1 % planes.channels,
                              [&](body::Index i) { ++visits[static_cast<std::size_t>(i)]; });
      });
      body::Index i = 0;
      for (const int count : visits) {
        const bool of_channel = i++ / planes.area % planes.channels == 1 % planes.channels;
        CHECK(count == (of_channel ? 1 : 0));
      }
    }
  }
}

}  // namespace stowage::test
