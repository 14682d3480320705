#include "answers/report/memory_columns.hpp"

#include <algorithm>
#include <array>

namespace stowage {

std::vector<MemoryColumn> memory_columns(const MemoryOverStep& memory, std::size_t most) {
  const std::size_t nodes = memory.live.size();
  const std::size_t count = std::min(most, nodes);
  std::vector<MemoryColumn> columns;
  columns.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * nodes / count, end = (i + 1) * nodes / count;
    const auto of = [&](const std::vector<Bytes>& values, std::size_t at) {
      return values.begin() + static_cast<std::ptrdiff_t>(at);
    };
    const auto largest = std::max_element(of(memory.live, begin), of(memory.live, end));
    columns.push_back(
        {.nodes = {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)},
         .at = static_cast<std::int32_t>(largest - memory.live.begin()),
         .live = *largest,
         .reserved = *std::max_element(of(memory.reserved, begin), of(memory.reserved, end))});
  }
  return columns;
}

std::vector<StorageClass> stacked_classes(const MemoryOverStep& memory) {
  using enum StorageClass;
  constexpr std::array<StorageClass, storage_class_count> order{parameter,
                                                                parameter_copy,
                                                                buffer,
                                                                optimizer_state,
                                                                kv_cache,
                                                                gradient,
                                                                input,
                                                                augmented_input,
                                                                activation,
                                                                saved_auxiliary,
                                                                activation_gradient,
                                                                temporary,
                                                                workspace};
  std::vector<StorageClass> there;
  for (const StorageClass of : order) {
    const std::vector<Bytes>& bytes = memory.by_class[static_cast<std::size_t>(of)];
    if (std::ranges::any_of(bytes, [](Bytes b) { return b > Bytes(); })) there.push_back(of);
  }
  return there;
}

}  // namespace stowage
