// Shared: a value whose copies share one place until one of them is changed.
//
// A large step graph has a million views of some thousand different shapes, and a kernel call for
// each has its operator's attributes. A copy of a Shared is a pointer and a count; a change takes a
// place of its own first, so that a Shared behaves as the value itself in every other way.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace stowage {

/// How many hold a place. While the process has one thread, as the C library knows, counting is
/// plain arithmetic: as libstdc++ does for std::shared_ptr, and several times faster.
class HolderCount {
 public:
  void add() {
    if (single_threaded()) {
      count_.store(get() + 1, std::memory_order_relaxed);
    } else {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  /// Whether this was the last.
  [[nodiscard]] bool remove() {
    if (!single_threaded()) return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    count_.store(get() - 1, std::memory_order_relaxed);
    return get() == 0;
  }
  [[nodiscard]] bool is_shared() const { return count_.load(std::memory_order_acquire) > 1; }

 private:
  [[nodiscard]] static bool single_threaded() {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
  }
  [[nodiscard]] std::int32_t get() const { return count_.load(std::memory_order_relaxed); }

  std::atomic<std::int32_t> count_ = 1;
};

/// Safe to read and to copy from several threads at once, as a plain value is. An untouched one
/// takes no memory. It is one pointer in size, where a std::shared_ptr is two.
template <typename T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T value) : place_(new Place{std::move(value)}) {}
  Shared(const Shared& other) : place_(other.place_) {
    if (place_ != nullptr) place_->holders.add();
  }
  Shared(Shared&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(place_, other.place_);
    return *this;
  }
  ~Shared() {
    if (place_ != nullptr && place_->holders.remove()) delete place_;
  }

  [[nodiscard]] const T& operator*() const {
    if (place_ != nullptr) return place_->value;
    static const T untouched;
    return untouched;
  }
  const T* operator->() const { return &**this; }

  /// The value for changing. The reference lasts until this is copied: what is written through it
  /// after that would reach the copy too.
  [[nodiscard]] T& own() {
    if (place_ == nullptr) {
      place_ = new Place;
    } else if (place_->holders.is_shared()) {
      *this = Shared(place_->value);
    }
    return place_->value;
  }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.place_ == b.place_ || *a == *b;
  }

 private:
  struct Place {
    T value;
    HolderCount holders;
  };
  Place* place_ = nullptr;
};

}  // namespace stowage
