// Field numbers of onnx.proto.
#pragma once

namespace stowage {

namespace model_field {
inline constexpr int ir_version = 1, producer = 2, graph = 7, opset = 8, functions = 25;
}
namespace opset_field {
inline constexpr int domain = 1, version = 2;
}
namespace graph_field {
inline constexpr int node = 1, name = 2, initializer = 5, input = 11, output = 12, value = 13;
}
namespace node_field {
inline constexpr int input = 1, output = 2, name = 3, op = 4, attribute = 5, domain = 7,
                     overload = 8, metadata = 9, key = 1, text = 2;
}
namespace attribute_field {
inline constexpr int name = 1, real = 2, integer = 3, text = 4, tensor = 5, graph = 6, reals = 7,
                     integers = 8, texts = 9, type = 20, refers_to = 21;
}
namespace tensor_field {
inline constexpr int dims = 1, type = 2, reals = 4, small_integers = 5, integers = 7, name = 8,
                     raw = 9, doubles = 10, unsigned_integers = 11;
}
namespace value_field {
inline constexpr int name = 1, type = 2, tensor_type = 1, element = 1, shape = 2, dimension = 1,
                     dimension_value = 1, dimension_symbol = 2;
}
namespace function_field {
inline constexpr int name = 1, input = 4, output = 5, node = 7, domain = 10, defaults = 11,
                     overload = 13;
}

}  // namespace stowage
