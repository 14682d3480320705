#include "estimator/text/yaml_document.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace stowage {

namespace {

Result<YamlDocument> read(const std::string& text) {
  return read_yaml(std::make_shared<const SourceText>(SourceText{"t", text}));
}

// The tree on one line, each node with its line:column+length.
std::string show(const YamlNode& node) {
  std::string text = fmt::format("{}:{}+{}", node.mark.line, node.mark.column, node.mark.length);
  if (node.kind == YamlNode::Kind::null) return text + " null";
  if (node.is_scalar()) return text + (node.quoted ? " \"" : " ") + node.text;
  text += node.is_mapping() ? " {" : " [";
  for (const YamlNode* item : node.items) text += " (" + show(*item) + ")";
  return text + (node.is_mapping() ? "}" : "]");
}

std::string outcome(const std::string& text) {
  const auto document = read(text);
  if (!document) return render(document.error());
  return show(*document->root) + "\n" + render(document->mistakes);
}

}  // namespace

TEST_CASE("the tree keeps places, quotes, the text of numbers and the order of keys") {
  CHECK(outcome("b: 010\na: ['x', ~, {k: }]\n") ==
        "1:1+1 { (1:1+1 b) (1:4+3 010) (2:1+1 a) "
        "(2:4+1 [ (2:5+3 \"x) (2:10+1 null) (2:13+1 { (2:14+1 k) (2:17+1 null)})])}\n");
  CHECK(outcome("\xef\xbb\xbf"
                "a: b\r\nc: d\r\n") == "1:1+1 { (1:1+1 a) (1:4+1 b) (2:1+1 c) (2:4+1 d)}\n");
}

TEST_CASE("an alias is its anchor's node") {
  CHECK(outcome("a: &x [1]\nb: *x\n") ==
        "1:1+1 { (1:1+1 a) (1:4+1 [ (1:8+1 1)]) (2:1+1 b) (1:4+1 [ (1:8+1 1)])}\n");
  CHECK(outcome("a: &x [*x]\n") ==
        "t:1:8: error: an alias inside the node that it stands for\n  a: &x [*x]\n         ^\n");
}

TEST_CASE("what the tree cannot hold is reported, and the rest stands") {
  CHECK(outcome("a: 1\n? [x]\n: 2\na: !int 3\n") ==
        "1:1+1 { (1:1+1 a) (1:4+1 1)}\n"
        "t:4:4: error: the tag '!int' means nothing here\n  a: !int 3\n     ^~~~\n"
        "t:2:3: error: expected a name before ':', found a list\n  ? [x]\n    ^\n"
        "t:4:1: error: 'a' is given twice\n  a: !int 3\n  ^\n"
        "t:1:1: note: first here\n  a: 1\n  ^\n");
}

TEST_CASE("sizes and depths beyond the caps are refused quickly") {
  std::string nested;
  for (int i = 0; i < 200; ++i) nested += "- ";
  CHECK(outcome(nested).find("nested deeper than 100 levels") != std::string::npos);
  const std::string brackets(10'000'000, '[');
  CHECK(outcome(brackets).find("t:1:101: error: nested deeper than 100 levels") == 0);
  CHECK(outcome(std::string(largest_description + 1, 'a')) ==
        "t: error: a description of more than 16 MiB\n");
  CHECK(outcome("a: &a [x]\n" +
                [] {
                  std::string text;
                  for (char c = 'b'; c <= 'z'; ++c) {
                    text += fmt::format("{0}: &{0} [*{1}, *{1}]\n", c, static_cast<char>(c - 1));
                  }
                  return text;
                }())
            .find("more than 3000000 nodes, aliases counted") != std::string::npos);
}

TEST_CASE("bytes that are not text are refused") {
  CHECK(outcome("a: \xff\n") ==
        "t:1:4: error: byte 0xff is not UTF-8 text\n  a: \\xff\n     ^~~~\n  is this a model "
        "description?\n");
  for (const char* bytes :
       {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x01"}) {
    CAPTURE(bytes);
    CHECK_FALSE(read(bytes).has_value());
  }
  CHECK_FALSE(read(std::string("a\0b", 3)).has_value());
  CHECK(read("a: \xe2\x82\xac \xf0\x9f\x9a\xa2").has_value());
  for (const char* empty : {"", "\n\n", "# nothing\n", "---\n", "~"}) {
    CHECK(outcome(empty) == "t: error: the description is empty\n");
  }
}

}  // namespace stowage
