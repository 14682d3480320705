// Launch: one body over an index space. A kernel call of our own is a list of launches, which run
// one after the other.
//
// A row (rows.hpp) makes the launches of a call. The host runs them here. A device runs the body's
// compiled function, which it finds by the body's name, with the body's bytes as the parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gpu_probe/kernels/bodies/group.hpp"

namespace stowage::kernels {

struct Launch {
  /// The body's type as C++ writes it: "stowage::body::UnaryForward<float, float>".
  std::string_view body;
  std::int64_t count = 0;         ///< the index space is [0, count)
  std::int64_t threads = 0;       ///< of a device that share an index; 0: one thread for each index
  std::int64_t elements = 1;      ///< about how much work an index is
  std::vector<std::byte> values;  ///< the bytes of the body

  /// Runs [begin, end) on this thread.
  void (*run)(const std::byte* body, std::int64_t begin, std::int64_t end) = nullptr;
  /// Runs one thread's part of one index; null where `threads` is 0.
  void (*run_in_group)(const std::byte* body, std::int64_t index,
                       const body::Group& group) = nullptr;
};
using Launches = std::vector<Launch>;

struct LaunchableBody {
  std::string_view name;  ///< as in Launch::body
  bool in_groups = false;
  void (*run)(const std::byte* body, std::int64_t begin, std::int64_t end) = nullptr;
};
/// Every body that any row can launch, in either arithmetic; sorted by name.
[[nodiscard]] std::vector<LaunchableBody> launchable_bodies();

/// How much work each thread has at least, in a group of several warps.
inline constexpr std::int64_t elements_a_thread = 4;
/// How many threads of a device share `elements` of work: a multiple of 32, at most 512.
[[nodiscard]] constexpr std::int64_t threads_for(std::int64_t elements) {
  constexpr std::int64_t warp = 32, each = elements_a_thread, most = 512;
  const std::int64_t warps = (elements + warp * each - 1) / (warp * each);
  return warps < 1 ? warp : warps * warp > most ? most : warps * warp;
}

namespace detail {

template <class T>
constexpr std::string_view type_name() {
  // The text is "... [with T = name; ...]" or "... [T = name]".
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::size_t begin = text.find("T = ") + 4;
  constexpr std::size_t end = text.find_first_of(";]", begin);
  return text.substr(begin, end - begin);
}

/// Adds a body to launchable_bodies(); returns true.
bool enlist(const LaunchableBody& body);
template <class Body>
void run_each(const std::byte* bytes, std::int64_t begin, std::int64_t end) {
  const Body& self = *reinterpret_cast<const Body*>(bytes);
  for (std::int64_t i = begin; i < end; ++i) self(i);
}
template <class Body>
void run_each_alone(const std::byte* bytes, std::int64_t begin, std::int64_t end) {
  const Body& self = *reinterpret_cast<const Body*>(bytes);
  for (std::int64_t i = begin; i < end; ++i) self(i, body::Group{});
}
/// Adds each body that a row launches to the list before main() begins.
template <class Body>
inline const bool is_enlisted_alone = enlist({type_name<Body>(), false, run_each<Body>});
template <class Body>
inline const bool is_enlisted_for_groups = enlist({type_name<Body>(), true, run_each_alone<Body>});

template <class Body>
Launch launch_of(const Body& body, std::int64_t count, std::int64_t threads) {
  static_assert(std::is_trivially_copyable_v<Body> && alignof(Body) <= alignof(std::max_align_t));
  Launch launch{.body = type_name<Body>(), .count = count, .threads = threads};
  const auto* const bytes = reinterpret_cast<const std::byte*>(&body);
  launch.values.assign(bytes, bytes + sizeof body);
  return launch;
}

}  // namespace detail

/// A launch of body(i) for each i of [0, count), in any order and at the same time.
template <class Body>
[[nodiscard]] Launch each_index(const Body& body, std::int64_t count) {
  static_cast<void>(detail::is_enlisted_alone<Body>);
  Launch launch = detail::launch_of(body, count, 0);
  launch.run = detail::run_each<Body>;
  return launch;
}

/// A launch of body(i, group) for each i of [0, count), in any order and at the same time.
template <class Body>
[[nodiscard]] Launch each_group(const Body& body, std::int64_t count, std::int64_t threads) {
  static_cast<void>(detail::is_enlisted_for_groups<Body>);
  Launch launch = detail::launch_of(body, count, threads);
  launch.elements = threads * elements_a_thread;
  launch.run = detail::run_each_alone<Body>;
  launch.run_in_group = [](const std::byte* bytes, std::int64_t index, const body::Group& group) {
    (*reinterpret_cast<const Body*>(bytes))(index, group);
  };
  return launch;
}

}  // namespace stowage::kernels
