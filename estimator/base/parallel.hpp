// for_each_index: independent pieces of work on as many threads as the machine has to spare.
#pragma once

#include <cstddef>
#include <functional>

namespace stowage {

/// How many pieces are worth handing over at once: the machine's threads.
[[nodiscard]] std::size_t thread_count();

/// Calls work(0) to work(count - 1), each once, and returns when all have ended. What they do may
/// not depend on each other, so that the result is the same on any machine. All calls of the
/// program share the machine's threads: one within another finds those taken and works alone.
/// Throws what a call threw, of the lowest index, once all have ended.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace stowage
