#include "cli/report/kernel_reference.hpp"

#include <fmt/format.h>

#include "cli/report/operator_reference.hpp"
#include "estimator/step/kernel_table.hpp"

namespace stowage {

namespace {

constexpr std::string_view introduction =
    R"(# Kernels

Made from the table in `estimator/step/kernel_list.hpp` by `stowage help kernels`; do not edit.

The kernels that a step's nodes call ([step-file.md](step-file.md)). The reader holds every node of a
step of the `stowage` kernels against this table, and so does the host before it runs one. A step of
PyTorch's kernels is not: no backend here runs them. A kernel of another name is
foreign: it is weighed and planned, and runs nowhere.

Tensors of the `stowage` kernels are contiguous, row-major, with no offset. All are written for a GPU as
well; [validation.md](validation.md) says how they are tried without one.

| arguments | meaning |
|---|---|
| `x, w, [b] -> y` | reads and writes, in this order; what is in brackets may be missing |
| `x, [w, b] -> y` | `w` and `b` stand together or are both missing |
| `x... -> y` | one or more |
| `a, b -> a` | a name on both sides is one storage: the kernel writes in place |
| `y, dy -> dx over dy` | `dx` may lie where `dy` does, with the same shape and type; where a step works in place ([step-file.md](step-file.md)), it does so once nothing else needs `dy` |
| `a, b -> y over a or b` | over either |
| `indices: index -> y` | a type of its own; without one, an argument has the kernel's type |

Any float is float32, float64, float16 or bfloat16; a call's arguments of the kernel's type are of one
format, but for weights and statistics beside activations of 16 bits.

| type | in a step | on the host, and on a GPU |
|---|---|---|
)";

constexpr std::string_view kernel_page_heading = R"(
The last column names the attributes beside those of the operator that calls the kernel (`stowage ops`),
and what the kernel computes where its name does not say it.

| kernel | arguments | type | attributes and meaning |
|---|---|---|---|
)";

constexpr std::array described_types{
    ArgumentType::floating, ArgumentType::number, ArgumentType::constant, ArgumentType::element,
    ArgumentType::any,      ArgumentType::index,  ArgumentType::mask,     ArgumentType::bytes};

std::string notes_text(const KernelRow& row) {
  if (row.no_device_reason.empty()) return std::string(row.notes);
  return fmt::format("runs nowhere ({}); {}", row.no_device_reason, row.notes);
}

}  // namespace

std::string kernel_reference() {
  std::string text(introduction);
  for (const ArgumentType type : described_types) {
    text += fmt::format("| {} | {} | {} |\n", to_string(type),
                        types_text(argument_types(type, std::nullopt)),
                        types_text(argument_types(type, KernelDevice::host)));
  }
  text += kernel_page_heading;
  for (const KernelRow& row : kernel_table()) {
    text += fmt::format("| `{}` | `{}` | {} | {} |\n", row.name, row.signature.text,
                        to_string(row.type), notes_text(row));
  }
  return text;
}

}  // namespace stowage
