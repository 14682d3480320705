#include "estimator/text/yaml_document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_set>

namespace stowage {

namespace {

// Thrown inside yaml-cpp's callbacks, the only way to stop it; caught in read_yaml.
struct Refused {
  Mark mark;
  std::string message;
  std::string hint;
};

Mark mark_of(const YAML::Mark& mark, std::size_t length = 1) {
  constexpr std::size_t longest_caret = 1000;
  return {mark.line + 1, mark.column + 1,
          static_cast<int>(std::clamp<std::size_t>(length, 1, longest_caret))};
}

// Builds the tree from yaml-cpp's events, without a second tree; an alias bomb is stopped while it
// is read.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish_leaf(add(YamlNode::Kind::null, mark_of(mark), anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end() || !found->second.complete) {
      throw Refused{mark_of(mark), "an alias inside the node that it stands for", ""};
    }
    attach(*found->second.node, found->second.weight, found->second.height, mark_of(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    refuse_tag(tag, mark);
    YamlNode& node =
        add(YamlNode::Kind::scalar, mark_of(mark, value.size() + (quoted ? 2 : 0)), anchor);
    node.quoted = quoted;
    node.text = value;
    finish_leaf(node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(add(YamlNode::Kind::sequence, mark_of(mark), anchor), anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(add(YamlNode::Kind::mapping, mark_of(mark), anchor), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  /// The innermost list or mapping that has not ended.
  [[nodiscard]] Mark innermost() const { return open_.empty() ? Mark{} : open_.back().node->mark; }

 private:
  struct Anchor {
    YamlNode* node = nullptr;
    std::size_t weight = 1;  // nodes that a walk of it visits
    int height = 0;
    bool complete = true;
  };
  struct Open {
    YamlNode* node;
    YAML::anchor_t anchor;
    std::size_t weight = 1;
    int height = 0;
  };

  void refuse_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    document_.mistakes.push_back({.message = fmt::format("the tag '{}' means nothing here", tag),
                                  .span = span_of(document_.source, mark_of(mark, tag.size()))});
  }

  YamlNode& add(YamlNode::Kind kind, Mark mark, YAML::anchor_t anchor) {
    YamlNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.mark = mark;
    if (anchor != 0) anchors_[anchor] = {&node, 1, 0, true};
    return node;
  }

  void finish_leaf(YamlNode& node) { attach(node, 1, 0, node.mark); }

  void open(YamlNode& node, YAML::anchor_t anchor) {
    if (open_.size() >= deepest_yaml) {
      throw Refused{node.mark, fmt::format("nested deeper than {} levels", deepest_yaml), ""};
    }
    if (anchor != 0) anchors_[anchor].complete = false;
    open_.push_back({&node, anchor});
  }

  void close() {
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.node->is_mapping()) drop_repeated_keys(*closed.node);
    if (closed.anchor != 0) {
      anchors_[closed.anchor] = {closed.node, closed.weight, closed.height, true};
    }
    attach(*closed.node, closed.weight, closed.height, closed.node->mark);
  }

  void attach(YamlNode& node, std::size_t weight, int height, const Mark& mark) {
    if (open_.empty()) {
      document_.root = &node;
      return;
    }
    Open& parent = open_.back();
    parent.node->items.push_back(&node);
    parent.weight += weight;
    parent.height = std::max(parent.height, height + 1);
    if (parent.weight > most_yaml_nodes) {
      throw Refused{mark, fmt::format("more than {} nodes, aliases counted", most_yaml_nodes), ""};
    }
    if (parent.height + static_cast<int>(open_.size()) > deepest_yaml) {
      throw Refused{mark, fmt::format("nested deeper than {} levels", deepest_yaml), ""};
    }
  }

  // Whether all keys are scalars and no key is repeated or unusual. Only for small mappings, which
  // nearly all are.
  static bool is_plain(const YamlNode& mapping) {
    constexpr std::size_t most_entries = 12;
    if (mapping.entry_count() > most_entries) return false;
    for (std::size_t i = 0; i < mapping.entry_count(); ++i) {
      const YamlNode& key = mapping.key(i);
      if (!key.is_scalar() || key.text == "<<") return false;
      for (std::size_t k = 0; k < i; ++k) {
        if (mapping.key(k).text == key.text) return false;
      }
    }
    return true;
  }

  void drop_repeated_keys(YamlNode& mapping) {
    if (is_plain(mapping)) return;
    std::vector<const YamlNode*> kept;
    kept.reserve(mapping.items.size());
    std::map<std::string_view, const YamlNode*> seen;  // looked up only
    for (std::size_t i = 0; i < mapping.entry_count(); ++i) {
      const YamlNode& key = mapping.key(i);
      if (!key.is_scalar()) {
        complain(key.mark, fmt::format("expected a name before ':', found {}", describe(key)), "");
        continue;
      }
      if (key.text == "<<" && !key.quoted) {
        complain(key.mark, "merge keys '<<' are not supported",
                 "use 'defaults:' or a block with arguments");
        continue;
      }
      const auto [first, fresh] = seen.emplace(key.text, &key);
      if (!fresh) {
        complain(key.mark, fmt::format("'{}' is given twice", key.text), "");
        document_.mistakes.back().notes.push_back(
            {.severity = Severity::note,
             .message = "first here",
             .span = span_of(document_.source, first->second->mark)});
        continue;
      }
      kept.push_back(&key);
      kept.push_back(&mapping.value(i));
    }
    mapping.items = std::move(kept);
  }

  void complain(const Mark& mark, std::string message, std::string hint) {
    document_.mistakes.push_back({.message = std::move(message),
                                  .span = span_of(document_.source, mark),
                                  .hint = std::move(hint)});
  }

  YamlDocument& document_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchor> anchors_;
};

// Bytes of the well-formed UTF-8 sequence at the front of `text`, 0 where it is ill-formed or a
// control character that YAML forbids.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  }
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  return overlong || surrogate || (first == 0xf4 && byte(1) > 0x8f) ? 0 : length;
}

// Words may contain brackets too, so the limit on brackets is far above the limit on nesting.
constexpr int most_unclosed = 10 * deepest_yaml;

// Checks the bytes before parsing: an error if they are not text, or have very deeply nested
// brackets (yaml-cpp scans a flow collection to its end before it reports the first bracket).
std::optional<Refused> refuse_bytes(std::string_view text) {
  if (text.size() > largest_description) {
    return Refused{
        {}, fmt::format("a description of more than {} MiB", largest_description >> 20), ""};
  }
  int line = 1;
  std::size_t line_start = 0;
  int brackets = 0;    // in one run
  int unclosed = 0;    // in all, outside comments
  char before = '\n';  // this character
  bool comment = false;
  for (std::size_t i = 0; i < text.size();) {
    const Mark here{line, static_cast<int>(i - line_start) + 1, 1};
    const std::size_t length = character_length(text.substr(i));
    if (length == 0) {
      return Refused{
          here, fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(text[i])),
          "is this a model description?"};
    }
    const char c = text[i];
    const bool after_space = before == ' ' || before == '\t' || before == '\n';
    comment = c != '\n' && (comment || (c == '#' && after_space));
    before = c;
    if (!comment && (c == '[' || c == '{')) ++unclosed;
    if (!comment && (c == ']' || c == '}')) unclosed = std::max(unclosed - 1, 0);
    if (c == '[' || c == '{') {
      if (++brackets > deepest_yaml || unclosed > most_unclosed) {
        return Refused{here, fmt::format("nested deeper than {} levels", deepest_yaml), ""};
      }
    } else if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
      brackets = 0;
    }
    i += length;
    if (c == '\n') {
      ++line;
      line_start = i;
    }
  }
  return std::nullopt;
}

tl::unexpected<Diagnostics> refuse(const SourceTextPtr& source, Refused refused) {
  return failure(Diagnostic{.message = std::move(refused.message),
                            .span = span_of(source, refused.mark),
                            .hint = std::move(refused.hint)});
}

bool indented_by_tab(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view indent = text.substr(0, text.find_first_not_of(" \t"));
  return line > 0 && indent.find('\t') != std::string_view::npos;
}

std::string plain_words(const std::string& message) {
  if (message == "end of sequence flow not found") return "expected ',' or ']' of this list";
  if (message == "end of map flow not found") return "expected ',' or '}' of this mapping";
  if (message == "end of map not found") return "expected another 'key: value', or less indent";
  if (message == "end of sequence not found") return "expected another '- item', or less indent";
  return message;
}

}  // namespace

SourceSpan span_of(const SourceTextPtr& source, const Mark& mark) {
  return {source, mark.line, mark.column, mark.length};
}

const YamlNode* YamlNode::find(std::string_view wanted) const {
  for (std::size_t i = 0; i < entry_count(); ++i) {
    if (key(i).text == wanted) return &value(i);
  }
  return nullptr;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return fmt::format("'{}'", node.text.substr(0, 60));
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a mapping";
  }
  return "";
}

Result<YamlDocument> read_yaml(SourceTextPtr source) {
  if (auto refused = refuse_bytes(source->text)) return refuse(source, std::move(*refused));
  YamlDocument document;
  document.source = source;
  TreeBuilder builder(document);
  try {
    std::istringstream stream(source->text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || document.root == nullptr ||
        document.root->kind == YamlNode::Kind::null) {
      return refuse(source, {{}, "the description is empty", ""});
    }
    const YamlNode* root = document.root;
    if (parser.HandleNextDocument(builder)) {
      return refuse(source, {document.root->mark, "a second document in the same file",
                             "a description is one document: no '---' after the first line"});
    }
    document.root = root;
  } catch (const YAML::Exception& e) {
    const Mark mark = e.mark.is_null() ? Mark{} : mark_of(e.mark);
    auto refused = refuse(source, {mark, fmt::format("not YAML: {}", plain_words(e.msg)),
                                   indented_by_tab(source->text, mark.line)
                                       ? "a tab indents this line: YAML takes spaces"
                                       : ""});
    if (e.msg.starts_with("end of ")) {
      refused.value()[0].notes.push_back({.severity = Severity::note,
                                          .message = "it starts here",
                                          .span = span_of(source, builder.innermost())});
    }
    return refused;
  } catch (Refused& refused) {
    return refuse(source, std::move(refused));
  }
  return document;
}

}  // namespace stowage
