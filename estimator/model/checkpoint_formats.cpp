#include "estimator/model/checkpoint_formats.hpp"

namespace stowage {

bool means(const LayerRule& rule, std::string_view path) {
  switch (rule.kind) {
    case LayerRule::Kind::linear:
      return true;
    case LayerRule::Kind::whole_path:
      return path == rule.text;
    case LayerRule::Kind::match:
      return rule.pattern && rule.pattern->matches(path);
    case LayerRule::Kind::conversion:
      return path.ends_with(rule.text) || (rule.pattern && rule.pattern->matches_modules(path));
  }
  return false;
}

}  // namespace stowage
