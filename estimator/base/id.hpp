// Id<Tag>: an index into a table, as a type of its own, so that a storage's number cannot be handed
// to something that wants an operator's.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace stowage {

template <typename Tag>
struct Id {
  std::int32_t value = -1;  ///< -1: none

  constexpr auto operator<=>(const Id&) const = default;
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  [[nodiscard]] static constexpr Id of(std::size_t index) {
    return Id{static_cast<std::int32_t>(index)};
  }
};

using OperatorId = Id<struct OperatorTag>;    ///< an operator (layer) of a ModelGraph
using TensorId = Id<struct TensorTag>;        ///< a tensor of a ModelGraph
using ParameterId = Id<struct ParameterTag>;  ///< a parameter or buffer of a ModelGraph
using StorageId = Id<struct StorageTag>;      ///< a storage of a StepGraph
using NodeId = Id<struct NodeTag>;            ///< a kernel call of a StepGraph

}  // namespace stowage
