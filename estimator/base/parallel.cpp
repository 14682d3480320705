#include "estimator/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace stowage {
namespace {

std::atomic<int>& spare_threads() {
  static std::atomic<int> spare = static_cast<int>(thread_count()) - 1;
  return spare;
}

/// Of the machine's threads so many as are to spare; each is to be given back.
int borrow_threads(std::size_t wanted) {
  int spare = spare_threads().load();
  int count = 0;
  do {
    count = std::min(static_cast<int>(wanted), std::max(spare, 0));
  } while (!spare_threads().compare_exchange_weak(spare, spare - count));
  return count;
}

}  // namespace

std::size_t thread_count() { return std::max(1U, std::thread::hardware_concurrency()); }

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  {
    const int borrowed = borrow_threads(count - 1);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(borrowed));
    for (int i = 0; i < borrowed; ++i) {
      threads.emplace_back([&] {
        run();
        ++spare_threads();  // at once: the others' loops may want it
      });
    }
    run();
  }
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace stowage
