// Checks a kernel call's arguments. Untyped addresses become arrays only here.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"

namespace stowage::kernels {

using Sizes = std::vector<std::int64_t>;

/// The error of a call that a kernel cannot run, in words.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "[2, 3, 4]".
[[nodiscard]] std::string shape_text(const Sizes& shape);
[[nodiscard]] std::int64_t count(const Sizes& shape);
/// The product of shape[from..to).
[[nodiscard]] std::int64_t count(const Sizes& shape, std::size_t from, std::size_t to);
[[nodiscard]] Sizes row_major_strides(const Sizes& shape);

template <typename... Arguments>
void require(bool holds, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  if (!holds) throw KernelError(fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Throws KernelError unless the call has `writes` results. For kernels whose number of results
/// follows from the arguments or an attribute; the signature is checked before.
void require_writes(const KernelCall& call, std::size_t writes);
void require_shape(std::string_view what, const TensorArgument& argument, const Sizes& expected);
void require_same_shape(std::string_view what, const TensorArgument& a, const TensorArgument& b);

/// Throws KernelError unless it has this type and, if it has elements, an address.
void require_type(const TensorArgument& argument, DataType type);

/// The elements of a tensor of any floating-point format. KernelError for other types.
[[nodiscard]] body::Floats any_floats(const TensorArgument& argument);
inline constexpr body::Floats no_floats{nullptr, body::FloatFormat::float32};

// For kernels that take only float32.
[[nodiscard]] const float* floats(const TensorArgument& argument);
[[nodiscard]] float* mutable_floats(const TensorArgument& argument);
[[nodiscard]] const std::int64_t* integers(const TensorArgument& argument);
[[nodiscard]] std::int64_t* mutable_integers(const TensorArgument& argument);
[[nodiscard]] const std::uint8_t* mask_bytes(const TensorArgument& argument);
[[nodiscard]] std::uint8_t* mutable_mask_bytes(const TensorArgument& argument);

// Attributes. The forms with two arguments throw KernelError where there is no such attribute. A
// number also serves as a list of `length` equal numbers, an integer as a real number.
[[nodiscard]] bool has(const KernelCall& call, std::string_view name);
[[nodiscard]] std::int64_t integer(const KernelCall& call, std::string_view name);
[[nodiscard]] std::int64_t integer(const KernelCall& call, std::string_view name,
                                   std::int64_t otherwise);
[[nodiscard]] double real(const KernelCall& call, std::string_view name);
[[nodiscard]] double real(const KernelCall& call, std::string_view name, double otherwise);
[[nodiscard]] bool boolean(const KernelCall& call, std::string_view name, bool otherwise);
[[nodiscard]] std::string text(const KernelCall& call, std::string_view name,
                               std::string_view otherwise);
[[nodiscard]] Sizes list(const KernelCall& call, std::string_view name, std::size_t length,
                         std::int64_t otherwise);
/// A list of any length; one number is a list of one.
[[nodiscard]] Sizes list(const KernelCall& call, std::string_view name);
/// The axis as a number from 0 on; a negative attribute counts from the end.
[[nodiscard]] std::size_t axis_of(const KernelCall& call, std::string_view name, std::size_t rank,
                                  std::int64_t otherwise);

}  // namespace stowage::kernels
