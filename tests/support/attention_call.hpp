// A call of attention as a test writes it, and the question that it makes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage::testing {

struct AttentionCall {
  std::int64_t batch = 1, heads = 1;
  std::int64_t key_heads = 0;  ///< 0: as many as heads
  std::int64_t length = 1;
  std::int64_t keys = 0;  ///< 0: as many as length
  std::int64_t features = 64;
  std::int64_t value_features = 0;  ///< 0: features
  bool causal = true;
  double dropout = 0;
  DataType type = DataType::bfloat16;
  bool bias = false;  ///< [length, keys], of every head

  [[nodiscard]] std::string text() const {
    return fmt::format("{} x {}({}) heads, {} x {}, {}({}) features, dropout {}", batch, heads,
                       key_heads, length, keys, features, value_features, dropout);
  }
};

/// In memory heads lie within positions, as transformers makes them.
inline AttentionQuery attention_call(AttentionCall call, bool backward) {
  if (call.key_heads == 0) call.key_heads = call.heads;
  if (call.keys == 0) call.keys = call.length;
  if (call.value_features == 0) call.value_features = call.features;
  const auto operand = [&](std::int64_t heads, std::int64_t length, std::int64_t features) {
    return AttentionQuery::Operand{{call.batch, heads, length, features},
                                   {length * heads * features, features, heads * features, 1}};
  };
  AttentionQuery query;
  query.direction =
      backward ? AttentionQuery::Direction::backward : AttentionQuery::Direction::forward;
  query.type = call.type;
  query.query = operand(call.heads, call.length, call.features);
  query.key = operand(call.key_heads, call.keys, call.features);
  query.value = operand(call.key_heads, call.keys, call.value_features);
  query.output = operand(call.heads, call.length, call.value_features);
  if (backward) query.gradient = query.output;
  if (call.bias) {
    query.bias = {{call.batch, call.heads, call.length, call.keys}, {0, 0, call.keys, 1}};
  }
  query.causal = call.causal;
  query.dropout = call.dropout;
  return query;
}

}  // namespace stowage::testing
