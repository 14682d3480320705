// Computes weights from their quantised bytes.
#include "gpu_probe/kernels/bodies/dequantise.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {
namespace {

std::int64_t block_of_values(const KernelCall& call, const TensorArgument& absmax,
                             std::int64_t values) {
  const std::int64_t block = integer(call, "block");
  require(block >= 1, "a block of {} values", block);
  const std::int64_t blocks = (values + block - 1) / block;
  require(count(absmax.shape) == blocks, "there are {} maxima for {} blocks", count(absmax.shape),
          blocks);
  return block;
}

void require_count(std::string_view what, const TensorArgument& argument, std::int64_t wanted) {
  require(count(argument.shape) == wanted, "{} has {} elements where {} are needed", what,
          count(argument.shape), wanted);
}

}  // namespace

Launches dequantize_blocks(const KernelCall& call, Arithmetic arithmetic) {
  const auto &q = call.reads[0], &absmax = call.reads[1], &code = call.reads[2],
             &offset = call.reads[3], &y = call.writes[0];
  constexpr std::int64_t code_of_a_byte = 256;
  const std::int64_t values = count(y.shape);
  require_count("q", q, values);
  require_count("code", code, code_of_a_byte);
  require_count("offset", offset, 1);
  const std::int64_t block = block_of_values(call, absmax, values);
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::DequantizeBlocks<T, Real>{mask_bytes(q), any_floats(absmax), any_floats(code),
                                        any_floats(offset), elements<T>(y), block},
        values);
  })};
}

Launches dequantize_4bit(const KernelCall& call, Arithmetic arithmetic) {
  const auto &q = call.reads[0], &absmax = call.reads[1], &code = call.reads[2],
             &w = call.writes[0];
  constexpr std::int64_t code_of_half_a_byte = 16;
  const std::int64_t values = count(w.shape);
  require_count("q", q, (values + 1) / 2);
  require_count("code", code, code_of_half_a_byte);
  const std::int64_t block = block_of_values(call, absmax, values);
  return {in_formats(w.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::Dequantize4Bit<T, Real>{mask_bytes(q), any_floats(absmax),
                                                    any_floats(code), elements<T>(w), block},
                      values);
  })};
}

Launches dequantize_rows(const KernelCall& call, Arithmetic arithmetic) {
  const auto &q = call.reads[0], &scales = call.reads[1], &w = call.writes[0];
  require(w.shape.size() == 2, "the weight is {}, not a matrix", shape_text(w.shape));
  const std::int64_t values = count(w.shape);
  require_count("q", q, values);
  require_count("scales", scales, w.shape[0]);
  const std::string encoding = text(call, "encoding", "");
  require(encoding == "int8" || encoding == "float8", "an encoding '{}'", encoding);
  const auto kind = encoding == "int8" ? body::ByteEncoding::int8 : body::ByteEncoding::float8;
  return {in_formats(w.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::DequantizeRows<T, Real>{mask_bytes(q), any_floats(scales),
                                                    elements<T>(w), w.shape[1], kind},
                      values);
  })};
}

}  // namespace stowage::kernels
