#include "cli/json_value.hpp"

#include <nlohmann/json.hpp>

namespace stowage {

namespace {

using Document = nlohmann::ordered_json;

Document document(const Json& json) {
  struct Convert {
    Document operator()(std::monostate) const { return nullptr; }
    Document operator()(bool value) const { return value; }
    Document operator()(std::int64_t value) const { return value; }
    Document operator()(double value) const { return value; }
    Document operator()(const std::string& value) const { return value; }
    Document operator()(const Json::Array& values) const {
      Document array = Document::array();
      for (const Json& value : values) array.push_back(document(value));
      return array;
    }
    Document operator()(const Json::Object& members) const {
      Document object = Document::object();
      for (const auto& [name, value] : members) object[name] = document(value);
      return object;
    }
  };
  return std::visit(Convert{}, json.value());
}

}  // namespace

std::string Json::text() const {
  return document(*this).dump(2, ' ', false, Document::error_handler_t::replace) + '\n';
}

}  // namespace stowage
