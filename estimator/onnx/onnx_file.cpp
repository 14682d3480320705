#include "estimator/onnx/onnx_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/onnx/onnx_fields.hpp"
#include "estimator/onnx/onnx_numbers.hpp"

namespace stowage {

namespace {

constexpr std::size_t values_of_an_attribute = 8;  // so much larger is it than a name

class FileReader {
 public:
  explicit FileReader(ByteSource& source) : source_(source) {}

  OnnxFile read() {
    OnnxFile file;
    bool has_graph = false;
    each_field(0, source_.size(), [&](const WireField& field) {
      switch (field.number) {
        case model_field::ir_version:
          file.ir_version = static_cast<std::int64_t>(field.value);
          break;
        case model_field::producer:
          file.producer = text(field);
          break;
        case model_field::graph:
          has_graph = true;
          read_graph(field, file.graph, 0);
          break;
        case model_field::opset:
          read_opset(field, file);
          break;
        case model_field::functions:
          count();
          read_function(field, file.functions.emplace_back());
          break;
        default:
          break;
      }
    });
    if (!has_graph) throw BrokenFile(source_.size(), "the file ends before its graph");
    return file;
  }

 private:
  template <typename Take>
  void each_field(std::int64_t begin, std::int64_t end, Take take) {
    WireReader reader(source_, begin, end);
    WireField field;
    while (reader.next(field)) take(field);
  }
  template <typename Take>
  void each_field(const WireField& message, Take take) {
    constexpr int length_type = 2;
    if (message.type != length_type) {
      throw BrokenFile(message.begin, fmt::format("field {} is not a message", message.number));
    }
    each_field(message.begin, message.end, take);
  }

  std::string text(const WireField& field) {
    constexpr std::int64_t bytes_of_a_value = 64;
    count(1 + static_cast<std::size_t>((field.end - field.begin) / bytes_of_a_value));
    return read_text(source_, field, longest_onnx_name);
  }
  void count(std::size_t values = 1) {
    values_ += values;
    if (values_ > most_onnx_values) {
      throw BrokenFile(0, fmt::format("it has more than {} names and numbers", most_onnx_values));
    }
  }
  void integers(const WireField& field, std::vector<std::int64_t>& into) {
    const std::size_t before = into.size();
    read_integers(source_, field, most_kept_numbers, into);
    count(into.size() - before);
  }

  void read_opset(const WireField& message, OnnxFile& file) {
    std::string domain;
    std::int64_t version = 0;
    each_field(message, [&](const WireField& field) {
      if (field.number == opset_field::domain) domain = text(field);
      if (field.number == opset_field::version) version = static_cast<std::int64_t>(field.value);
    });
    if (domain.empty() || domain == "ai.onnx") file.opset = version;
  }

  void read_graph(const WireField& message, OnnxGraph& graph, int depth) {
    if (depth > deepest_onnx_graph) {
      throw BrokenFile(message.begin,
                       fmt::format("graphs stand more than {} deep in one another", depth - 1));
    }
    each_field(message, [&](const WireField& field) {
      switch (field.number) {
        case graph_field::node:
          read_node(field, graph.nodes.emplace_back(), depth);
          break;
        case graph_field::name:
          graph.name = text(field);
          break;
        case graph_field::initializer:
          read_tensor(field, graph.initializers.emplace_back());
          break;
        case graph_field::input:
          read_value(field, graph.inputs.emplace_back());
          break;
        case graph_field::output:
          read_value(field, graph.outputs.emplace_back());
          break;
        case graph_field::value:
          read_value(field, graph.values.emplace_back());
          break;
        default:
          break;
      }
    });
  }

  void read_node(const WireField& message, OnnxNode& node, int depth) {
    if (++nodes_ > most_onnx_nodes) {
      throw BrokenFile(message.begin, fmt::format("it has more than {} nodes", most_onnx_nodes));
    }
    node.offset = message.begin;
    each_field(message, [&](const WireField& field) {
      switch (field.number) {
        case node_field::input:
          node.inputs.push_back(text(field));
          break;
        case node_field::output:
          node.outputs.push_back(text(field));
          break;
        case node_field::name:
          node.name = text(field);
          break;
        case node_field::op:
          node.op = text(field);
          break;
        case node_field::attribute:
          count(values_of_an_attribute);
          read_attribute(field, node.attributes.emplace_back(), depth);
          break;
        case node_field::domain:
          node.domain = text(field);
          break;
        case node_field::overload:
          node.overload = text(field);
          break;
        case node_field::metadata:
          read_metadata(field, node);
          break;
        default:
          break;
      }
    });
    if (node.domain == "ai.onnx") node.domain.clear();
  }

  // Only three keys are kept: others, such as stack traces, may be long.
  void read_metadata(const WireField& message, OnnxNode& node) {
    std::string* into = nullptr;
    each_field(message, [&](const WireField& field) {
      if (field.end - field.begin > longest_onnx_name) return;
      if (field.number == node_field::key) {
        const std::string key = read_text(source_, field, longest_onnx_name);
        into = key == "pkg.onnxscript.rewriter.rule_name" ? &node.rewrites
               : key == "pkg.torch.onnx.name_scopes"      ? &node.scopes
               : key == "pkg.torch.onnx.fx_node"          ? &node.call
                                                          : nullptr;
      } else if (field.number == node_field::text && into != nullptr) {
        *into = text(field);
      }
    });
  }

  void read_attribute(const WireField& message, OnnxAttribute& attribute, int depth) {
    each_field(message, [&](const WireField& field) {
      switch (field.number) {
        case attribute_field::name:
          attribute.name = text(field);
          break;
        case attribute_field::real:
          attribute.real = onnx_real_of(field.value, static_cast<int>(OnnxType::float32));
          break;
        case attribute_field::integer:
          attribute.integer = static_cast<std::int64_t>(field.value);
          break;
        case attribute_field::text:
          attribute.text = short_text(field);
          break;
        case attribute_field::tensor: {
          OnnxTensor tensor;
          read_tensor(field, tensor);
          attribute.tensor = std::make_shared<const OnnxTensor>(std::move(tensor));
          break;
        }
        case attribute_field::graph: {
          OnnxGraph graph;
          read_graph(field, graph, depth + 1);
          attribute.graph = std::make_shared<const OnnxGraph>(std::move(graph));
          break;
        }
        case attribute_field::reals:
          read_floats(source_, field, most_kept_numbers, attribute.reals);
          count(attribute.reals.size());
          break;
        case attribute_field::integers:
          integers(field, attribute.integers);
          break;
        case attribute_field::texts:
          attribute.texts.push_back(short_text(field));
          break;
        case attribute_field::type:
          attribute.type = static_cast<int>(field.value);
          break;
        case attribute_field::refers_to:
          attribute.refers_to = text(field);
          break;
        default:
          break;
      }
    });
  }

  // An attribute's text may be a long document (metadata of an exporter), which is not needed.
  std::string short_text(const WireField& field) {
    if (field.end - field.begin > longest_onnx_name) return {};
    return text(field);
  }

  void read_tensor(const WireField& message, OnnxTensor& tensor) {
    count();
    tensor.offset = message.begin;
    std::vector<WireField> data;
    each_field(message, [&](const WireField& field) {
      switch (field.number) {
        case tensor_field::dims:
          integers(field, tensor.dims);
          break;
        case tensor_field::type:
          tensor.type = static_cast<int>(field.value);
          break;
        case tensor_field::name:
          tensor.name = text(field);
          break;
        case tensor_field::raw:
        case tensor_field::reals:
        case tensor_field::small_integers:
        case tensor_field::integers:
        case tensor_field::doubles:
        case tensor_field::unsigned_integers:
          if (data.size() <= most_kept_numbers) data.push_back(field);
          break;
        default:
          break;
      }
    });
    read_numbers(data, tensor);
  }

  // The numbers of a small tensor, raw or in the list of its type.
  void read_numbers(const std::vector<WireField>& data, OnnxTensor& tensor) {
    std::size_t elements = 1;
    const std::size_t most = is_onnx_real(tensor.type) ? most_kept_reals : most_kept_numbers;
    for (const std::int64_t extent : tensor.dims) {
      if (extent < 0) throw BrokenFile(tensor.offset, "a tensor has a negative extent");
      if (extent > static_cast<std::int64_t>(most)) elements = most + 1;
      elements = std::min(elements * static_cast<std::size_t>(std::min<std::int64_t>(
                                         extent, static_cast<std::int64_t>(most) + 1)),
                          most + 1);
    }
    const int width = onnx_bytes_of(tensor.type);
    if (width == 0 || elements > most) return;
    for (const WireField& field : data) read_list(field, width, tensor);
    tensor.has_numbers = std::max(tensor.integers.size(), tensor.reals.size()) == elements;
    count(tensor.integers.size() + tensor.reals.size());
  }

  void read_list(const WireField& field, int width, OnnxTensor& tensor) {
    constexpr int float_width = 4;
    constexpr int double_width = 8;
    const auto take = [&](std::uint64_t bits) {
      if (tensor.integers.size() + tensor.reals.size() > most_kept_numbers) return;
      if (is_onnx_real(tensor.type)) {
        tensor.reals.push_back(onnx_real_of(bits, tensor.type));
      } else {
        tensor.integers.push_back(onnx_integer_of(bits, tensor.type));
      }
    };
    constexpr int length_type = 2;
    if (field.type != length_type) return take(field.value);
    WireReader reader(source_, field.begin, field.end);
    const bool is_fixed = field.number == tensor_field::raw ||
                          field.number == tensor_field::reals ||
                          field.number == tensor_field::doubles;
    if (field.number == tensor_field::reals) width = float_width;
    if (field.number == tensor_field::doubles) width = double_width;
    while (!reader.at_end() && tensor.integers.size() + tensor.reals.size() <= most_kept_numbers) {
      take(is_fixed ? reader.fixed(width) : reader.varint());
    }
  }

  void read_value(const WireField& message, OnnxValueInfo& value) {
    count();
    each_field(message, [&](const WireField& field) {
      if (field.number == value_field::name) value.name = text(field);
      if (field.number != value_field::type) return;
      each_field(field, [&](const WireField& type) {
        if (type.number != value_field::tensor_type) return;
        value.is_tensor = true;
        each_field(type, [&](const WireField& part) {
          if (part.number == value_field::element) value.type = static_cast<int>(part.value);
          if (part.number == value_field::shape) read_shape(part, value);
        });
      });
    });
  }

  void read_shape(const WireField& message, OnnxValueInfo& value) {
    value.has_shape = true;
    each_field(message, [&](const WireField& field) {
      if (field.number != value_field::dimension) return;
      count();
      OnnxDimension& dimension = value.shape.emplace_back();
      each_field(field, [&](const WireField& part) {
        if (part.number == value_field::dimension_value) {
          dimension.value = static_cast<std::int64_t>(part.value);
        }
        if (part.number == value_field::dimension_symbol) dimension.symbol = text(part);
      });
    });
  }

  void read_function(const WireField& message, OnnxFunction& function) {
    each_field(message, [&](const WireField& field) {
      switch (field.number) {
        case function_field::name:
          function.name = text(field);
          break;
        case function_field::input:
          function.inputs.push_back(text(field));
          break;
        case function_field::output:
          function.outputs.push_back(text(field));
          break;
        case function_field::node:
          read_node(field, function.nodes.emplace_back(), 0);
          break;
        case function_field::domain:
          function.domain = text(field);
          break;
        case function_field::defaults:
          read_attribute(field, function.defaults.emplace_back(), 0);
          break;
        case function_field::overload:
          function.overload = text(field);
          break;
        default:
          break;
      }
    });
  }

  ByteSource& source_;
  std::size_t values_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

OnnxFile read_onnx_file(ByteSource& source) { return FileReader(source).read(); }

}  // namespace stowage
