// PlanPlaces: where the file of a plan for PyTorch says something, for messages.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "estimator/document/json_tree.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

class PlanPlaces {
 public:
  /// A member's name, or an element's index.
  using PathPart = std::variant<std::string_view, std::size_t>;

  /// Precondition: read_pytorch_plan has read the text.
  explicit PlanPlaces(SourceTextPtr source);

  /// "p.json:14:3": the value at {"offload", 2, "release"}. Where the file leaves a member out:
  /// what it would be a part of.
  [[nodiscard]] std::string at(std::initializer_list<PathPart> path) const;

  /// Adds to what is wrong: "p.json:14:3: the step has no module 'layer9'".
  template <typename... Arguments>
  void note(Violations& wrong, std::initializer_list<PathPart> path,
            fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    wrong.note([&] {
      return fmt::format("{}: {}", at(path),
                         fmt::format(text, std::forward<Arguments>(arguments)...));
    });
  }

 private:
  Result<JsonTree> tree_;
};

}  // namespace stowage
