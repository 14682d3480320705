// OnnxFile: the contents of an ONNX file: nodes, types, and tensors without their data (onnx.proto,
// IR versions 3 to 13). Weights are skipped; only small tensors keep their numbers, as shapes are
// computed from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/onnx/wire.hpp"

namespace stowage {

inline constexpr int oldest_ir = 3;
inline constexpr int newest_ir = 13;  ///< onnx 1.20 to 1.23; newer ones are read with a warning
inline constexpr std::size_t most_kept_numbers = 4096;         ///< of an integer tensor
inline constexpr std::size_t most_kept_reals = 64;             ///< of a floating-point tensor
inline constexpr std::size_t most_onnx_nodes = 200'000;        ///< of a file
inline constexpr std::size_t most_onnx_values = 2'000'000;     ///< names, tensors, types, numbers
inline constexpr std::size_t most_onnx_axes = 32;              ///< of a tensor
inline constexpr std::size_t most_folded_numbers = 4'000'000;  ///< computed while translating
inline constexpr std::size_t most_onnx_outputs = 2 * most_onnx_nodes;  ///< of translated layers
inline constexpr int deepest_onnx_graph = 16;  ///< levels of graphs within attributes
inline constexpr std::int64_t largest_onnx_file = 1LL << 31U;  ///< protobuf's own limit
inline constexpr std::int64_t longest_onnx_name = 4096;

/// TensorProto.DataType's numbers.
enum class OnnxType : std::uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
};

struct OnnxTensor {
  std::string name;
  std::vector<std::int64_t> dims;
  int type = 0;
  bool has_numbers = false;                 ///< `integers` or `reals` has its elements
  std::vector<std::int64_t> integers = {};  ///< for integer and boolean types
  std::vector<double> reals = {};           ///< for floating-point types
  std::int64_t offset = 0;                  ///< in the file
};

struct OnnxDimension {
  std::int64_t value = -1;  ///< -1: not fixed
  std::string symbol = {};  ///< "batch_size"; "": it has no name
};

struct OnnxValueInfo {
  std::string name;
  int type = 0;
  bool has_shape = false;
  bool is_tensor = false;
  std::vector<OnnxDimension> shape = {};
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string name;
  int type = 0;  ///< AttributeProto.AttributeType
  double real = 0;
  std::int64_t integer = 0;
  std::string text = {};
  std::string refers_to = {};  ///< in a function's body: the call's attribute of that name
  std::vector<double> reals = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::string> texts = {};
  std::shared_ptr<const OnnxTensor> tensor = {};
  std::shared_ptr<const OnnxGraph> graph = {};
};

struct OnnxNode {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  std::string rewrites = {};  ///< metadata: the rules of onnxscript that made it
  std::string scopes = {};    ///< metadata: the modules that it comes from
  std::string call = {};      ///< metadata: the ATen call that it comes from
  std::int64_t offset = 0;    ///< in the file

  [[nodiscard]] const OnnxAttribute* find(std::string_view attribute) const;
  [[nodiscard]] std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  [[nodiscard]] double real(std::string_view attribute, double otherwise) const;
  [[nodiscard]] std::string text(std::string_view attribute, std::string_view otherwise) const;
  /// Empty: there is no such attribute.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view attribute) const;
};

/// The tensor of a Constant node, from whichever attribute has it; type 0: none has.
[[nodiscard]] OnnxTensor tensor_of_constant(const OnnxNode& node);

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs, values;
};

struct OnnxFunction {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
};

struct OnnxFile {
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;  ///< of the domain ""
  std::string producer;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

/// Memory and time are bounded by the limits above, whatever the file contains. Throws BrokenFile.
[[nodiscard]] OnnxFile read_onnx_file(ByteSource& source);

}  // namespace stowage
