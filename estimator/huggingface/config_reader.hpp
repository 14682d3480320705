// ConfigReader: reads a config.json of transformers key by key, with the defaults of its model
// type.
//
// A missing key, or null where that means the default, takes the default of transformers'
// configuration class (default_table.hpp). Keys have the names of that class; a file may use a
// general name for one ("hidden_size" for GPT-2's "n_embd"). Every mistake has the place of its
// value. finish() warns of keys that no version of the class has; other keys that were not read are
// ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

class ConfigReader {
 public:
  /// `node`: the mapping. `type`: a row of the default table. `where`: "" or "text_config." for
  /// messages about a part. `node` and `mistakes` outlive the reader.
  ConfigReader(const YamlNode& node, std::string type, std::string where, Mistakes& mistakes);

  /// The file's value under this name or its general name; null: it has none.
  const YamlNode* written(std::string_view key);
  /// The file's value, else the default; null: there is neither, or the value is null.
  const YamlNode* find(std::string_view key);

  /// Each of these reports a value of the wrong kind or out of bounds, and then returns a valid
  /// one.
  std::int64_t integer(std::string_view key, std::int64_t least = 1,
                       std::int64_t most = largest_size);
  std::optional<std::int64_t> integer_or_null(std::string_view key, std::int64_t least = 1,
                                              std::int64_t most = largest_size);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least = 1);
  double real(std::string_view key, double least = 0, double most = 1e12);
  std::optional<double> real_or_null(std::string_view key, double least = 0, double most = 1e12);
  /// A probability: from 0 to less than 1.
  double probability(std::string_view key);
  bool boolean(std::string_view key);
  std::string word(std::string_view key);
  std::vector<std::string> words(std::string_view key);

  /// Reports a mistake about the value of `key`, at the value or, if it is missing, at the file's
  /// beginning.
  void wrong(std::string_view key, std::string message, std::string hint = {});
  void warn(std::string_view key, std::string message, std::string hint = {});
  /// Marks a key as known: it changes no size, or is read elsewhere.
  void pass_over(std::string_view key) { asked_.emplace(key); }
  /// Warns of keys that the type does not have.
  void finish();

  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] const YamlNode& node() const { return node_; }
  [[nodiscard]] Mistakes& mistakes() { return mistakes_; }

  static constexpr std::int64_t largest_size = std::int64_t{1} << 31;

 private:
  Mark mark_of(std::string_view key);
  bool refuse(const YamlNode& value, std::string_view key, std::string_view expected);
  std::optional<std::int64_t> integer_of(const YamlNode& value, std::string_view key,
                                         std::int64_t least, std::int64_t most);

  const YamlNode& node_;
  std::string type_, where_;
  Mistakes& mistakes_;
  const YamlNode* defaults_;
  const YamlNode* other_names_;
  std::set<std::string, std::less<>> asked_;
};

/// The class of a model type, "LlamaConfig" for "llama"; empty: no such type.
[[nodiscard]] std::string_view config_class(std::string_view type);

}  // namespace stowage
