#include "estimator/onnx/inline_functions.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace stowage {

namespace {

constexpr int deepest_call = 32;
constexpr std::size_t name_bytes_of_a_value = 64;  // longer names count as several
constexpr std::size_t values_of_a_copy = 8;        // of an attribute, beside its contents

std::size_t values_of_name(const std::string& name) {
  return (name.size() + name_bytes_of_a_value - 1) / name_bytes_of_a_value;
}

// What a copy of the attribute takes; tensors and graphs are shared.
std::size_t values_of_attribute(const OnnxAttribute& attribute) {
  std::size_t values = values_of_a_copy + values_of_name(attribute.name) +
                       values_of_name(attribute.text) + attribute.reals.size() +
                       attribute.integers.size();
  for (const std::string& text : attribute.texts) values += values_of_name(text);
  return values;
}

class FunctionInliner {
 public:
  explicit FunctionInliner(OnnxFile& file) : file_(file) {
    for (const OnnxFunction& function : file.functions) {
      functions_.emplace(std::tuple(function.domain, function.name, function.overload), &function);
    }
  }

  void run() {
    if (functions_.empty()) return;
    std::vector<OnnxNode> nodes;
    for (const OnnxNode& node : file_.graph.nodes) add(node, 0, nodes);
    file_.graph.nodes = std::move(nodes);
  }

 private:
  using Names = std::map<std::string, std::string>;
  using Attributes = std::map<std::string_view, const OnnxAttribute*>;

  void add(const OnnxNode& node, int depth, std::vector<OnnxNode>& into) {
    const auto found = functions_.find({node.domain, node.op, node.overload});
    if (found == functions_.end()) {
      if (into.size() >= most_onnx_nodes) {
        throw BrokenFile(node.offset,
                         fmt::format("its functions make more than {} nodes", most_onnx_nodes));
      }
      into.push_back(node);
      return;
    }
    if (depth == deepest_call) {
      throw BrokenFile(node.offset,
                       fmt::format("functions call one another more than {} deep: does "
                                   "'{}' call itself?",
                                   deepest_call, node.op));
    }
    if (++calls_ > static_cast<std::int64_t>(most_onnx_nodes)) {
      throw BrokenFile(node.offset,
                       fmt::format("functions are called more than {} times", most_onnx_nodes));
    }
    const OnnxFunction& function = *found->second;
    const std::string prefix = fmt::format("call{}", calls_);
    count(node, function.inputs.size() + function.outputs.size() + function.defaults.size() +
                    node.attributes.size());
    Names names;
    const auto bind = [&](const auto& formal, const auto& actual) {
      for (std::size_t i = 0; i < formal.size(); ++i) {
        names[formal[i]] = i < actual.size() ? actual[i] : std::string();
      }
    };
    bind(function.inputs, node.inputs);
    bind(function.outputs, node.outputs);
    Attributes given;  // the call's, then the defaults of those that it does not give
    for (const OnnxAttribute& attribute : node.attributes)
      given.emplace(attribute.name, &attribute);
    for (const OnnxAttribute& usual : function.defaults) given.emplace(usual.name, &usual);
    for (const OnnxNode& inner : function.nodes) {
      add(renamed(inner, given, names, prefix), depth + 1, into);
    }
  }

  // Counts what is made, before it is. Throws BrokenFile if that is too much in all.
  void count(const OnnxNode& node, std::size_t values) {
    values_ += values;
    if (values_ > most_onnx_values) {
      throw BrokenFile(
          node.offset,
          fmt::format("its functions, written out, have more than {} names and numbers",
                      most_onnx_values));
    }
  }

  // A node of a function's body in one call of it.
  OnnxNode renamed(const OnnxNode& inner, const Attributes& given, Names& names,
                   const std::string& prefix) {
    count(inner, values_of_name(inner.name) + values_of_name(inner.op) +
                     values_of_name(inner.domain) + values_of_name(inner.overload) +
                     values_of_name(inner.rewrites) + values_of_name(inner.scopes) +
                     values_of_name(inner.call));
    OnnxNode made{.name = inner.name,
                  .op = inner.op,
                  .domain = inner.domain,
                  .overload = inner.overload,
                  .rewrites = inner.rewrites,
                  .scopes = inner.scopes,
                  .call = inner.call,
                  .offset = inner.offset};
    const auto rename = [&](const std::string& name) {
      if (name.empty()) return name;
      const auto known = names.find(name);
      if (known != names.end()) {
        count(inner, values_of_name(known->second));
        return known->second;
      }
      count(inner, 2 * values_of_name(name) + 2);
      return names.emplace(name, fmt::format("{}/{}", prefix, name)).first->second;
    };
    for (const std::string& name : inner.inputs) made.inputs.push_back(rename(name));
    for (const std::string& name : inner.outputs) made.outputs.push_back(rename(name));
    for (const OnnxAttribute& attribute : inner.attributes) {
      const OnnxAttribute* used = &attribute;
      if (!attribute.refers_to.empty()) {
        const auto found = given.find(attribute.refers_to);
        if (found == given.end()) continue;
        used = found->second;
      }
      count(inner, values_of_attribute(*used));
      made.attributes.push_back(*used);
      made.attributes.back().name = attribute.name;
    }
    return made;
  }

  OnnxFile& file_;
  std::map<std::tuple<std::string, std::string, std::string>, const OnnxFunction*> functions_;
  std::int64_t calls_ = 0;
  std::size_t values_ = 0;  ///< that calls have made
};

}  // namespace

void inline_functions(OnnxFile& file) { FunctionInliner(file).run(); }

}  // namespace stowage
