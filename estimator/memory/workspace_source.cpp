#include "estimator/memory/workspace_source.hpp"

namespace stowage {

std::string_view to_string(WorkspaceOrigin origin) {
  switch (origin) {
    case WorkspaceOrigin::none:
      return "none";
    case WorkspaceOrigin::cudnn:
      return "cudnn";
    case WorkspaceOrigin::rule:
      return "rule";
    case WorkspaceOrigin::mixed:
      return "mixed";
  }
  return "none";
}

}  // namespace stowage
