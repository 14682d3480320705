#include "estimator/document/json_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

SourceSpan span_at(const SourceTextPtr& source, std::size_t begin, std::size_t length) {
  const std::string_view before = std::string_view(source->text).substr(0, begin);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  return {source, static_cast<int>(line), static_cast<int>(begin - line_start) + 1,
          static_cast<int>(length)};
}

// Receives nlohmann's events. They have no places, but come in the order of the text, so a cursor
// that skips the characters between two values is always at the value of the next event.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(JsonTree& tree) : tree_(tree), text_(tree.source->text) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) cursor_ = byte_order_mark.size();
  }

  bool null() override { return add(Kind::null, 4); }
  bool boolean(bool value) override {
    if (!add(Kind::boolean, value ? 4 : 5)) return false;
    tree_.nodes.back().integer = value ? 1 : 0;
    return true;
  }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return too_large();
    }
    return add_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    const bool is_integer = written.find_first_of(".eE") == string_t::npos;
    if (is_integer || !std::isfinite(value)) return too_large();
    if (!add(Kind::real, number_length())) return false;
    tree_.nodes.back().real = value;
    return true;
  }
  bool string(string_t& value) override { return add_text(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Kind::object); }
  bool key(string_t& value) override { return add_text(value); }
  bool end_object() override { return close() && unique_keys(); }
  bool start_array(std::size_t) override { return open(Kind::array); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string what = error.what();
    for (const std::string_view before : {"] ", "parse error at ", ": "}) {
      const std::size_t at = what.find(before);
      if (at != std::string::npos) what = what.substr(at + before.size());
    }
    std::replace_if(
        what.begin(), what.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return fail(std::min(position == 0 ? 0 : position - 1, text_.size()),
                "this is not JSON: " + what);
  }

  std::optional<Diagnostic> failure;

 private:
  bool fail(std::size_t at, std::string message, std::string hint = {}) {
    failure = Diagnostic{.message = std::move(message),
                         .span = span_at(tree_.source, at, 1),
                         .hint = std::move(hint)};
    return false;
  }

  void skip_between() {
    cursor_ = std::min(text_.find_first_not_of(" \t\r\n,:", cursor_), text_.size());
  }

  [[nodiscard]] std::size_t number_length() {
    skip_between();
    return std::min(text_.find_first_not_of("+-.0123456789eE", cursor_), text_.size()) - cursor_;
  }

  bool too_large() {
    skip_between();
    return fail(cursor_, "the number is past 64 bits");
  }

  bool add(Kind kind, std::size_t length) {
    skip_between();
    if (tree_.nodes.size() >= most_json_values) {
      return fail(cursor_, fmt::format("a file holds at most {} values", most_json_values));
    }
    if (!open_.empty()) ++tree_.nodes[open_.back()].children;
    JsonTree::Node& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.begin = static_cast<std::uint32_t>(cursor_);
    node.length = static_cast<std::uint32_t>(length);
    node.next = static_cast<std::uint32_t>(tree_.nodes.size());
    cursor_ += length;
    return true;
  }

  bool add_integer(std::int64_t value) {
    if (!add(Kind::integer, number_length())) return false;
    tree_.nodes.back().integer = value;
    return true;
  }

  bool add_text(const std::string& value) {
    skip_between();
    std::size_t end = cursor_ + 1;
    while (text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    const std::string_view raw = text_.substr(cursor_ + 1, end - cursor_ - 1);
    if (!add(Kind::text, raw.size() + 2)) return false;
    tree_.nodes.back().text = tree_.texts.size();
    const bool has_escapes = raw.size() != value.size();
    tree_.texts.push_back(has_escapes ? std::string_view(tree_.decoded.emplace_back(value)) : raw);
    return true;
  }

  bool open(Kind kind) {
    if (!add(kind, 1)) return false;
    if (open_.size() == deepest_json) {
      return fail(cursor_ - 1, fmt::format("lists and objects nest at most {} deep", deepest_json));
    }
    open_.push_back(tree_.nodes.size() - 1);
    return true;
  }

  bool close() {
    skip_between();
    ++cursor_;
    tree_.nodes[open_.back()].next = static_cast<std::uint32_t>(tree_.nodes.size());
    closed_ = open_.back();
    open_.pop_back();
    return true;
  }

  bool unique_keys() {
    std::unordered_set<std::string_view> seen;
    std::size_t index = closed_ + 1;
    for (std::uint32_t i = 0; i < tree_.nodes[closed_].children; i += 2) {
      const JsonTree::Node& key = tree_.nodes[index];
      if (!seen.insert(tree_.texts[key.text]).second) {
        return fail(key.begin, "the same member stands here twice");
      }
      index = tree_.nodes[index + 1].next;
    }
    return true;
  }

  JsonTree& tree_;
  std::string_view text_;
  std::size_t cursor_ = 0;
  std::vector<std::size_t> open_;  // nodes: the lists and objects around the cursor
  std::size_t closed_ = 0;
};

}  // namespace

Kind JsonValue::kind() const { return tree_->nodes[index_].kind; }
bool JsonValue::boolean() const { return tree_->nodes[index_].integer != 0; }
std::int64_t JsonValue::integer() const { return tree_->nodes[index_].integer; }
double JsonValue::real() const { return tree_->nodes[index_].real; }
std::string_view JsonValue::text() const { return tree_->texts[tree_->nodes[index_].text]; }

std::size_t JsonValue::size() const {
  const JsonTree::Node& node = tree_->nodes[index_];
  return node.kind == Kind::object ? node.children / 2 : node.children;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (Iterator member = begin(); !(member == end()); ++member) {
    const bool found = (*member).text() == key;
    ++member;
    if (found) return *member;
  }
  return std::nullopt;
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  index_ = tree_->nodes[index_].next;
  return *this;
}

JsonValue::Iterator JsonValue::begin() const { return {*tree_, index_ + 1}; }
JsonValue::Iterator JsonValue::end() const { return {*tree_, tree_->nodes[index_].next}; }

SourceSpan JsonValue::span() const {
  const JsonTree::Node& node = tree_->nodes[index_];
  return span_at(tree_->source, node.begin, node.length);
}

std::string JsonValue::describe() const {
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return boolean() ? "true" : "false";
    case Kind::integer:
      return fmt::format("the number {}", integer());
    case Kind::real:
      return fmt::format("the number {}", real());
    case Kind::text:
      return "a text";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "nothing";
}

tl::unexpected<Diagnostics> JsonValue::error(std::string message, std::string hint) const {
  return failure(
      Diagnostic{.message = std::move(message), .span = span(), .hint = std::move(hint)});
}

Result<JsonTree> read_json(SourceTextPtr source) {
  if (source->text.size() > largest_json) {
    return failure(
        Diagnostic{.message = fmt::format("a JSON file has at most {} MiB", largest_json >> 20),
                   .span = {.source = source}});
  }
  JsonTree tree;
  tree.source = std::move(source);
  const std::string& text = tree.source->text;
  // As many values as there may be, so that no vector that grows has two copies of them.
  const auto separators = std::ranges::count_if(
      text, [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; });
  tree.nodes.reserve(std::min(static_cast<std::size_t>(separators) + 1, most_json_values));
  Builder builder(tree);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return failure(*std::move(builder.failure));
  }
  return tree;
}

}  // namespace stowage
