// Json: a result as JSON, in the order in which it was made. Written by nlohmann-json, whose header
// stays in json_value.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;                                      ///< null
  Json(bool value) : value_(value) {}                    // NOLINT: a value is a Json
  Json(std::int64_t value) : value_(value) {}            // NOLINT
  Json(int value) : value_(std::int64_t{value}) {}       // NOLINT
  Json(double value) : value_(value) {}                  // NOLINT; not finite: written as null
  Json(Bytes value) : value_(value.count()) {}           // NOLINT: bytes are integers
  Json(std::string value) : value_(std::move(value)) {}  // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(std::nullptr_t) = delete;                                // Json() is null
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT
  Json(Array value) : value_(std::move(value)) {}               // NOLINT
  Json(Object value) : value_(std::move(value)) {}              // NOLINT

  using Value =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object>;
  [[nodiscard]] const Value& value() const { return value_; }

  /// Two spaces an indentation, a newline at the end. Bytes that are no UTF-8 become U+FFFD.
  [[nodiscard]] std::string text() const;
  /// As text(), in one line without spaces and without a newline at the end.
  [[nodiscard]] std::string line() const;

 private:
  Value value_;
};

[[nodiscard]] Json number_or_null(const std::optional<double>& number);
[[nodiscard]] Json words_json(const std::vector<std::string>& words);

}  // namespace stowage
