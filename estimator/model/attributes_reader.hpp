// The attributes of a layer: looked up in the operator's row, with the defaults of the description
// and of the row under them.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/model/scope_reader.hpp"

namespace stowage {

/// Of one scope. `context`, `names` and `mistakes` outlive it.
class AttributesReader {
 public:
  AttributesReader(const ScopeContext& context, const ExpressionNames& names, Mistakes& mistakes)
      : context_(context), names_(names), mistakes_(mistakes) {}

  /// Fills entry.constants, settings and attribute_marks; `body` may be null. Precondition:
  /// entry.row.
  void read(const YamlNode* body, LayerEntry& entry);

 private:
  // What the operator's layers of this scope begin with.
  struct Prepared {
    Attributes defaults;                      // in the row's order; a zero where there is none
    std::vector<std::string_view> to_be_set;  // they have no default
    Attributes last;                          // those of the last layer: most layers are alike
  };

  void refuse_attribute(const OperatorRow& row, const YamlNode& key,
                        std::vector<std::string_view>& settled);
  Prepared& prepared(const OperatorRow& row);
  void complete(const OperatorRow& row, LayerEntry& entry, std::vector<AttributeSetting>& written,
                const std::vector<std::string_view>& settled);
  void set_written(AttributeSetting& setting, LayerEntry& entry);

  const ScopeContext& context_;
  const ExpressionNames& names_;
  Mistakes& mistakes_;
  std::unordered_map<const OperatorRow*, Prepared> prepared_;  // looked up only
};

}  // namespace stowage
