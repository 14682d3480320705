// Calls that index: embedding and its gradient, index_put_, roll; and the softmax of attention.
#include <algorithm>

#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/recorded/aten_table.hpp"

namespace stowage {

bool complete_embedding(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& indices = call.tensor("indices");
  completion.emit(Kernel::embedding_forward, {}, {indices, call.tensor("weight", 2)},
                  {call.result(0)},
                  {.temporaries = completion.scratch("flat_indices", embedding_scratch(indices))});
  return true;
}

bool complete_embedding_backward(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& indices = call.tensor("indices");
  const TensorView& given = call.tensor("grad_output");
  const TensorView dy = completion.argument_view(Kernel::embedding_backward, 1, given, given);
  std::vector<StorageId> temporaries;
  for (const std::string_view name : embedding_gradient_arrays) {
    for (const StorageId id : completion.scratch(name, byte_count(indices))) {
      temporaries.push_back(id);
    }
  }
  completion.emit(Kernel::embedding_backward, {}, {indices, dy}, {call.result(0)},
                  {.flops = element_count(dy.shape), .temporaries = std::move(temporaries)});
  return true;
}

namespace {

/// Elements of `self` up to its last indexed axis. Which axes the indices stand for is not
/// recorded: as many last axes as are alike in `values` are taken for whole.
Affine nameable_places(const TensorView& self, const TensorView& values, std::size_t indices) {
  Shape named = self.shape;
  for (std::size_t i = 1; named.size() > indices && i <= values.shape.size(); ++i) {
    if (named.back() != values.shape[values.shape.size() - i]) break;
    named.pop_back();
  }
  return element_count(named);
}

}  // namespace

bool complete_index_put(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& values = call.tensor("values");
  // The indices are broadcast to the longest of them; a mask's count is not known.
  Affine positions = 0;
  for (const TensorView& index : call.tensors("indices")) {
    if (index.type != DataType::int64 && index.type != DataType::int32) return false;
    const Affine count = element_count(index.shape);
    const bool is_longer = count.slope != positions.slope ? count.slope > positions.slope
                                                          : count.constant > positions.constant;
    if (is_longer) positions = count;
  }
  std::vector<TensorView> reads(call.tensors("indices").begin(), call.tensors("indices").end());
  reads.push_back(values);
  reads.push_back(call.tensor("self"));
  const bool sorts = call.boolean("accumulate", false);
  const Affine places =
      nameable_places(call.tensor("self"), values, call.tensors("indices").size());
  const Affine bytes = sorts ? index_put_scratch(positions, places, values) : Affine(0);
  completion.emit(Kernel::embedding_backward, {}, std::move(reads), {call.result(0)},
                  {.flops = element_count(values.shape),
                   .temporaries = completion.scratch("sorted_indices", bytes)});
  return true;
}

bool complete_sort(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& x = call.tensor("self");
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  std::vector<StorageId> temporaries;
  if (rank > 0) {
    const std::int64_t dim = call.integer("dim", -1);
    if (dim < -rank || dim >= rank) return false;
    const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
    if (!x.shape[axis].is_constant()) return false;
    temporaries = completion.scratch("places", sort_scratch(x, axis));
  }
  completion.emit(Kernel::top_places, {}, {x}, {call.result(0), call.result(1)},
                  {.flops = element_count(x.shape), .temporaries = std::move(temporaries)});
  return true;
}

bool complete_safe_softmax(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& scores = call.tensor("self");
  constexpr std::int64_t softmax_flops = 5;
  completion.emit(
      Kernel::softmax_forward, {}, {scores}, {call.result(0)},
      {.flops = element_count(scores.shape) * Affine(softmax_flops),
       .temporaries = completion.scratch("masked", safe_softmax_scratch(scores.shape))});
  return true;
}

bool complete_roll(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& y = call.result(0);
  const Affine bytes = roll_scratch(call.integers("shifts").size(), y);
  completion.emit(Kernel::roll, {}, {call.tensor("self")}, {y},
                  {.temporaries = completion.scratch("rolled", bytes)});
  return true;
}

}  // namespace stowage
