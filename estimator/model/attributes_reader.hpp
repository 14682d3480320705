// AttributesReader: reads a layer's attributes against its operator's row. Missing ones take the
// description's default, else the row's.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/model/scope_reader.hpp"

namespace stowage {

/// Reads the layers of one scope. `context`, `names` and `mistakes` must outlive it.
class AttributesReader {
 public:
  AttributesReader(const ScopeContext& context, const ExpressionNames& names, Mistakes& mistakes)
      : context_(context), names_(names), mistakes_(mistakes) {}

  /// Fills entry.constants, settings and attribute_marks; `body` may be null. Precondition:
  /// entry.row.
  void read(const YamlNode* body, LayerEntry& entry);

 private:
  // The attributes that this scope's layers of an operator start from.
  struct Prepared {
    Attributes defaults;                      // in the row's order; 0 for one without a default
    std::vector<std::string_view> to_be_set;  // attributes without a default
    Attributes last;  // those of the previous layer, as most layers are equal
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
