#include "estimator/onnx/inline_functions.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace stowage {

namespace {

constexpr int deepest_call = 32;

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
    Names names;
    const auto bind = [&](const auto& formal, const auto& actual) {
      for (std::size_t i = 0; i < formal.size(); ++i) {
        names[formal[i]] = i < actual.size() ? actual[i] : std::string();
      }
    };
    bind(function.inputs, node.inputs);
    bind(function.outputs, node.outputs);
    for (const OnnxNode& inner : function.nodes) {
      add(renamed(inner, function, node, names, prefix), depth + 1, into);
    }
  }

  static OnnxNode renamed(OnnxNode inner, const OnnxFunction& function, const OnnxNode& call,
                          Names& names, const std::string& prefix) {
    const auto rename = [&](std::string& name) {
      if (name.empty()) return;
      const auto known = names.emplace(name, fmt::format("{}/{}", prefix, name)).first;
      name = known->second;
    };
    for (std::string& name : inner.inputs) rename(name);
    for (std::string& name : inner.outputs) rename(name);
    std::vector<OnnxAttribute> attributes;
    for (OnnxAttribute& attribute : inner.attributes) {
      if (attribute.refers_to.empty()) {
        attributes.push_back(std::move(attribute));
        continue;
      }
      const OnnxAttribute* given = call.find(attribute.refers_to);
      for (const OnnxAttribute& usual : function.defaults) {
        if (given == nullptr && usual.name == attribute.refers_to) given = &usual;
      }
      if (given == nullptr) continue;
      attributes.push_back(*given);
      attributes.back().name = attribute.name;
    }
    inner.attributes = std::move(attributes);
    return inner;
  }

  OnnxFile& file_;
  std::map<std::tuple<std::string, std::string, std::string>, const OnnxFunction*> functions_;
  std::int64_t calls_ = 0;
};

}  // namespace

void inline_functions(OnnxFile& file) { FunctionInliner(file).run(); }

}  // namespace stowage
