#include "planner/export/settings_tree.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

SettingsTree small_tree() {
  SettingsTree inner, row, tree;
  inner.add("on", true);
  inner.add("rate", 0.00001);
  inner.add("text", "a \"b\"\n");
  row.add("key", "x");
  row.add("sizes", SettingsTree::List{1, "batch"});
  tree.add("whole", 3.0);
  tree.add("none", SettingsTree());
  tree.add("inner", std::move(inner));
  tree.add("empty", SettingsTree::Members{});
  tree.add("list", SettingsTree::List{"a", 2});
  tree.add("two words", -1);
  tree.add("rows", SettingsTree::List{row, row});
  return tree;
}

}  // namespace

TEST_CASE("a tree as JSON has its rows in a line each") {
  CHECK(json_text(small_tree()) ==
        R"({
  "whole": 3.0,
  "none": null,
  "inner": {
    "on": true,
    "rate": 0.00001,
    "text": "a \"b\"\u000a"
  },
  "empty": {},
  "list": ["a", 2],
  "two words": -1,
  "rows": [
    {"key": "x", "sizes": [1, "batch"]},
    {"key": "x", "sizes": [1, "batch"]}
  ]
}
)");
}

TEST_CASE("a tree as YAML is in block style") {
  CHECK(yaml_text(small_tree()) ==
        R"(whole: 3.0
none: null
inner:
  on: true
  rate: 0.00001
  text: "a \"b\"\u000a"
empty: {}
list: ["a", 2]
"two words": -1
rows:
  - key: "x"
    sizes: [1, "batch"]
  - key: "x"
    sizes: [1, "batch"]
)");
}

TEST_CASE("a tree as TOML has a table for each object, and no null") {
  SettingsTree inner, deeper, tree;
  deeper.add("mode", "full");
  inner.add("size", 4);
  inner.add("deeper", std::move(deeper));
  tree.add("inner", std::move(inner));
  tree.add("none", SettingsTree());
  tree.add("first", SettingsTree::List{1, 2});
  CHECK(toml_text(tree) ==
        R"(first = [1, 2]

[inner]
size = 4

[inner.deeper]
mode = "full"
)");
}

}  // namespace stowage
