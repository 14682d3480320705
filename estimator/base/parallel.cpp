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

/// Of the machine's threads so many as are to spare, given back at the end.
class Borrowed {
 public:
  explicit Borrowed(std::size_t wanted) {
    int spare = spare_threads().load();
    do {
      count_ = std::min(static_cast<int>(wanted), std::max(spare, 0));
    } while (!spare_threads().compare_exchange_weak(spare, spare - count_));
  }
  ~Borrowed() { spare_threads() += count_; }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  [[nodiscard]] int count() const { return count_; }

 private:
  int count_ = 0;
};

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
    const Borrowed borrowed(count - 1);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(borrowed.count()));
    for (int i = 0; i < borrowed.count(); ++i) threads.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace stowage
