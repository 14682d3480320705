#include "estimator/step/kernel_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace stowage {
namespace {

constexpr std::array<KernelRow, kernel_count> kernel_rows{{
#define STOWAGE_ROW(name, type, text, notes) \
  {Kernel::name, #name, ArgumentType::type, signature(text), "", notes},
#define STOWAGE_ABSENT_ROW(name, type, why, text, notes) \
  {Kernel::name, #name, ArgumentType::type, signature(text), why, notes},
    STOWAGE_KERNELS(STOWAGE_ROW, STOWAGE_ROW, STOWAGE_ABSENT_ROW)
#undef STOWAGE_ROW
#undef STOWAGE_ABSENT_ROW
}};

constexpr std::array all_floats{DataType::float32, DataType::float64, DataType::float16,
                                DataType::bfloat16};
constexpr std::array run_numbers{DataType::float32, DataType::float64, DataType::float16,
                                 DataType::bfloat16, DataType::int64};
constexpr std::array run_constants{DataType::float32,  DataType::float64, DataType::float16,
                                   DataType::bfloat16, DataType::int64,   DataType::boolean};
constexpr std::array run_indices{DataType::int64};
constexpr std::array all_integers{DataType::int64, DataType::int32, DataType::uint8,
                                  DataType::boolean};
constexpr std::array mask_types{DataType::boolean, DataType::uint8};
constexpr std::array byte_types{DataType::uint8};

std::span<const DataType> run_types(ArgumentType type) {
  switch (type) {
    case ArgumentType::own:
    case ArgumentType::floating:
      return all_floats;
    case ArgumentType::number:
      return run_numbers;
    case ArgumentType::constant:
      return run_constants;
    case ArgumentType::element:
    case ArgumentType::any:
      return all_data_types;
    case ArgumentType::index:
      return run_indices;
    case ArgumentType::mask:
      return mask_types;
    case ArgumentType::bytes:
      return byte_types;
  }
  return {};
}

// On whatever device: what the word means.
std::span<const DataType> meant_types(ArgumentType type) {
  switch (type) {
    case ArgumentType::own:
    case ArgumentType::floating:
      return all_floats;
    case ArgumentType::number:
    case ArgumentType::constant:
    case ArgumentType::element:
    case ArgumentType::any:
      return all_data_types;
    case ArgumentType::index:
      return all_integers;
    case ArgumentType::mask:
    case ArgumentType::bytes:
      return run_types(type);
  }
  return {};
}

/// Null: foreign.
const KernelRow* row_of(Kernel kernel) {
  return kernel == Kernel::foreign ? nullptr : &kernel_rows[static_cast<std::size_t>(kernel)];
}

/// Where the types given part from a side of the signature.
struct Mismatch {
  const SignatureArgument* argument = nullptr;  ///< null: there are too few or too many
  ArgumentType wanted = ArgumentType::own;
  DataType given = DataType::float32;
};

// All ways to deal out the types given are followed at once: bit i says that argument i may be the
// next one.
class Matching {
 public:
  Matching(const SignatureSide& arguments, ArgumentType own, std::optional<KernelDevice> device)
      : arguments_(arguments.all()), own_(own), device_(device) {}

  [[nodiscard]] std::optional<Mismatch> of(std::span<const DataType> given) const {
    std::uint32_t at = with_skipped(1);
    for (const DataType type : given) {
      const std::uint32_t next = after(at, type);
      if (next == 0) return mismatch(at, type);
      at = with_skipped(next);
    }
    if (has(at, arguments_.size())) return std::nullopt;
    return Mismatch{};
  }

 private:
  static bool has(std::uint32_t at, std::size_t i) { return (at >> i & 1U) != 0; }

  [[nodiscard]] ArgumentType type_of(const SignatureArgument& argument) const {
    return argument.type == ArgumentType::own ? own_ : argument.type;
  }
  [[nodiscard]] std::uint32_t with_skipped(std::uint32_t at) const {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (has(at, i) && arguments_[i].skips_to != 0) at |= 1U << arguments_[i].skips_to;
    }
    return at;
  }
  [[nodiscard]] std::uint32_t after(std::uint32_t at, DataType given) const {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!has(at, i)) continue;
      const auto suitable = argument_types(type_of(arguments_[i]), device_);
      if (std::ranges::find(suitable, given) == suitable.end()) continue;
      next |= (arguments_[i].repeats ? 3U : 2U) << i;
    }
    return next;
  }
  [[nodiscard]] Mismatch mismatch(std::uint32_t at, DataType given) const {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (has(at, i)) return {&arguments_[i], type_of(arguments_[i]), given};
    }
    return {};
  }

  std::span<const SignatureArgument> arguments_;
  ArgumentType own_;
  std::optional<KernelDevice> device_;
};

std::optional<std::string> side_problem(const KernelRow& row, const SignatureSide& arguments,
                                        std::span<const DataType> given, std::string_view verb,
                                        std::optional<KernelDevice> device) {
  const auto found = Matching(arguments, row.type, device).of(given);
  if (!found) return std::nullopt;
  if (found->argument == nullptr) {
    return fmt::format("{} {} tensor{} where it takes {}", verb, given.size(),
                       given.size() == 1 ? "" : "s",
                       arguments.text.empty() ? "none" : arguments.text);
  }
  std::vector<std::string_view> names;
  for (const DataType type : argument_types(found->wanted, device))
    names.push_back(to_string(type));
  return fmt::format("{} {} as '{}' where it takes {}", verb, to_string(found->given),
                     found->argument->name, fmt::join(names, ", "));
}

}  // namespace

std::string_view to_string(Kernel kernel) {
  const KernelRow* const row = row_of(kernel);
  return row == nullptr ? "foreign" : row->name;
}

std::optional<Kernel> find_kernel(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, Kernel> kernels;
    for (const KernelRow& row : kernel_rows) kernels.emplace(row.name, row.kernel);
    return kernels;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

std::string_view to_string(KernelDevice device) {
  return device == KernelDevice::host ? "host" : "cuda";
}

// The same on both devices: what runs on the GPU is held against the host.
std::span<const DataType> argument_types(ArgumentType type, std::optional<KernelDevice> device) {
  return device ? run_types(type) : meant_types(type);
}

std::span<const KernelRow> kernel_table() { return kernel_rows; }

std::string_view no_device_reason(Kernel kernel) {
  const KernelRow* const row = row_of(kernel);
  return row == nullptr ? "not a kernel of this program" : row->no_device_reason;
}

bool may_write_over(Kernel kernel, std::size_t written, std::size_t read) {
  const KernelRow* const row = row_of(kernel);
  if (row == nullptr || written >= row->signature.writes.count) return false;
  const SignatureArgument& result = row->signature.writes.table[written];
  return read < SignatureSide::most && (result.over >> read & 1U) != 0;
}

bool updates_arguments(Kernel kernel) {
  const KernelRow* const row = row_of(kernel);
  if (row == nullptr) return false;
  const auto reads = row->signature.reads.all();
  return std::ranges::any_of(row->signature.writes.all(), [&](const SignatureArgument& written) {
    return std::ranges::find(reads, written.name, &SignatureArgument::name) != reads.end();
  });
}

std::span<const DataType> kernel_types(Kernel kernel, KernelDevice device) {
  if (!no_device_reason(kernel).empty()) return {};
  return argument_types(row_of(kernel)->type, device);
}

std::optional<std::string> call_problem(Kernel kernel, const CallTypes& call,
                                        std::optional<KernelDevice> device) {
  const KernelRow* const row = row_of(kernel);
  if (row == nullptr) return std::nullopt;
  if (auto found = side_problem(*row, row->signature.reads, call.reads, "reads", device)) {
    return found;
  }
  return side_problem(*row, row->signature.writes, call.writes, "writes", device);
}

std::optional<DataType> unsupported_type(Kernel kernel, const CallTypes& call,
                                         KernelDevice device) {
  const KernelRow* const row = row_of(kernel);
  if (row == nullptr) return std::nullopt;
  const auto first_of = [&](const SignatureSide& arguments,
                            std::span<const DataType> given) -> std::optional<DataType> {
    const auto found = Matching(arguments, row->type, device).of(given);
    return found && found->argument != nullptr ? std::optional(found->given) : std::nullopt;
  };
  const auto found = first_of(row->signature.reads, call.reads);
  return found ? found : first_of(row->signature.writes, call.writes);
}

}  // namespace stowage
