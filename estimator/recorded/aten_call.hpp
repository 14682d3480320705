// AtenCall: access to the arguments and results of a recorded ATen call by name.
//
// A recorded node's kernel is the name of the ATen schema, `aten::add.Tensor`. The node reads the
// tensor arguments in the schema's order, with lists flattened; its attribute `arguments` names
// them: "input,weight,bias", a list of three as "tensors:3". It writes the results; its attribute
// `results` has their positions in the schema, "0,1", or the name of the argument that is written
// in place, "self". All other arguments are attributes with the schema's names (docs/step-file.md,
// "Recorded steps").
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A recorded call with missing or wrong arguments. complete_step() catches it.
struct CallRefused : std::runtime_error {
  explicit CallRefused(Diagnostic found)
      : std::runtime_error(found.message), diagnostic(std::move(found)) {}
  Diagnostic diagnostic;
};

/// Throws CallRefused: "node 'fc.addmm' calls aten::addmm, <complaint>".
[[noreturn]] void refuse_call(const KernelNode& node, std::string_view complaint);

inline constexpr std::string_view arguments_attribute = "arguments";
inline constexpr std::string_view results_attribute = "results";

/// Whether the node has the attribute `arguments`: it is a recorded call that is not completed yet.
[[nodiscard]] bool is_recorded_call(const KernelNode& node);

/// The schema's name without overload and in-place underscore: "aten::add" for "aten::add.Tensor"
/// and "aten::add_.Tensor".
[[nodiscard]] std::string_view schema_name(std::string_view kernel);

class AtenCall {
 public:
  /// Throws CallRefused, as all of the functions below, if the node has no `arguments`, or not as
  /// many as it reads. `node` must outlive it.
  explicit AtenCall(const KernelNode& node);

  [[nodiscard]] const KernelNode& node() const { return node_; }

  /// The tensor argument of that name; null: it was not given.
  [[nodiscard]] const TensorView* find(std::string_view argument) const;
  [[nodiscard]] const TensorView& tensor(std::string_view argument) const;
  /// As above, for a tensor that must have `axes` axes.
  [[nodiscard]] const TensorView& tensor(std::string_view argument, std::size_t axes) const;
  /// A list of tensors, or a single one; empty: not given.
  [[nodiscard]] std::span<const TensorView> tensors(std::string_view argument) const;

  /// The result at that position of the schema; null: there is none, or it is undefined.
  [[nodiscard]] const TensorView* find_result(std::int64_t place) const;
  [[nodiscard]] const TensorView& result(std::int64_t place) const;

  // Arguments that are not tensors. A single number is accepted as a list of one.
  [[nodiscard]] std::int64_t integer(std::string_view argument) const;
  [[nodiscard]] std::int64_t integer(std::string_view argument, std::int64_t otherwise) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view argument) const;
  [[nodiscard]] double real(std::string_view argument, double otherwise) const;
  [[nodiscard]] bool boolean(std::string_view argument, bool otherwise) const;

  [[noreturn]] void refuse(std::string_view complaint) const { refuse_call(node_, complaint); }

 private:
  struct Argument {
    std::string name;
    std::size_t first = 0, count = 1;  // of node_.reads
    bool is_list = false;
  };
  [[nodiscard]] const AttributeValue* attribute(std::string_view name) const;
  void read_arguments(std::string_view text);
  void read_results(std::string_view text);

  const KernelNode& node_;
  std::vector<Argument> arguments_;
  std::vector<std::int64_t> results_;  // by node_.writes
};

}  // namespace stowage
