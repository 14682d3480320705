#include "cli/output/json_value.hpp"

#include <nlohmann/json.hpp>

#include "estimator/base/printable.hpp"

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

/// `indentation`: -1: all in one line.
std::string dumped_text(const Json& json, int indentation) {
  const std::string dumped =
      document(json).dump(indentation, ' ', false, Document::error_handler_t::replace);
  // nlohmann-json escapes what JSON forbids. The other control characters stand in strings alone,
  // since everything else is ASCII.
  std::string out;
  for (std::string_view rest = dumped; !rest.empty();) {
    const TextPiece piece = first_piece(rest);
    const std::string_view bytes = rest.substr(0, piece.bytes);
    if (piece.is_printable || bytes == "\n") {
      out += bytes;
    } else {
      out += bytes == "\x7f" ? std::string("\\u007f") : printable_line(bytes);
    }
    rest.remove_prefix(piece.bytes);
  }
  return out;
}

}  // namespace

std::string Json::text() const { return dumped_text(*this, 2) + '\n'; }
std::string Json::line() const { return dumped_text(*this, -1); }

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json words_json(const std::vector<std::string>& words) {
  Json::Array array;
  for (const std::string& word : words) array.emplace_back(word);
  return array;
}

}  // namespace stowage
