// Sources: transformers 5.24, cache_utils.py (DynamicLayer, DynamicSlidingWindowLayer, StaticLayer,
// StaticSlidingWindowLayer) and masking_utils.py (sdpa_mask); vLLM, v1/kv_cache_interface.py and
// v1/attention/backends/flash_attn.py. What the first two allocate is traced
// (tests/reference/serving.py).
#include "estimator/serving/serving_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "estimator/step/operator_lowering.hpp"

namespace stowage::serving_rows {

namespace {

constexpr std::size_t token_axis = 2;

std::int64_t attribute_of(const OperatorLowering& lowering, std::string_view name) {
  return lowering.attributes().integer(name);
}

Shape with_tokens(Shape shape, std::int64_t tokens) {
  shape[token_axis] = tokens;
  return shape;
}

/// The shape of all users' caches, if the step has the tokens of some of them.
Shape of_all_users(Shape shape, const OperatorLowering& lowering) {
  if (const std::int64_t users = attribute_of(lowering, "users"); users > 0) shape[0] = users;
  return shape;
}

/// The part of a cache that attention reads: the users and tokens of the output.
TensorView attended_part(const OperatorLowering& lowering, const TensorView& cache, int output) {
  TensorView view = cache;
  view.is_view = true;
  view.shape = lowering.output_type(output).shape;
  return view;
}

/// torch.cat of cached and new tokens. A sliding window's cache is a view of the last window - 1
/// tokens of the previous step's result. Returns the old cache; none: there was none.
std::optional<StorageId> grow(OperatorLowering& lowering, int i, const std::string& name,
                              const std::vector<StorageId>& held) {
  const TensorView fresh = lowering.input(i);
  const Shape& read = lowering.output_type(i).shape;
  const std::int64_t past = attribute_of(lowering, "past");
  const std::int64_t before = read[token_axis].constant - fresh.shape[token_axis].constant;
  const TensorView made = lowering.new_tensor(name, read, fresh.type, StorageClass::kv_cache);
  std::vector<TensorView> parts;
  std::optional<StorageId> cached;
  if (before > 0) {
    const std::int64_t window = attribute_of(lowering, "window");
    const std::int64_t stored = window > 0 ? std::min(past, window) : past;
    const TensorView old = lowering.new_inherited_tensor(
        name + ".before", with_tokens(read, stored), fresh.type, StorageClass::kv_cache);
    parts.push_back(sliced(old, token_axis, stored - before, before));
    cached = old.storage;
  }
  parts.push_back(fresh);
  lowering.emit(Kernel::concatenate, name, parts, {made}, {.holds = held});
  lowering.keep_to_end(made);
  lowering.set_output(i, made);
  return cached;
}

// update() holds its arguments until it returns. A sliding layer releases the old cache when the
// new keys and values both exist.
void forward_dynamic(OperatorLowering& lowering) {
  std::vector<StorageId> held{lowering.input(0).storage, lowering.input(1).storage};
  const auto cached = grow(lowering, 0, "keys", held);
  if (cached && attribute_of(lowering, "window") > 0) held.push_back(*cached);
  (void)grow(lowering, 1, "values", held);
}

/// A layer's counter of cached tokens, and the positions of the new tokens, which are computed in
/// each step.
TensorView places_in_cache(OperatorLowering& lowering, std::int64_t tokens) {
  const TensorView counter =
      lowering.new_lasting_tensor("cumulative_length", {}, DataType::int64, StorageClass::kv_cache);
  const TensorView numbers =
      lowering.new_tensor("numbers", {tokens}, DataType::int64, StorageClass::activation);
  lowering.emit(Kernel::iota, "numbers", {}, {numbers});
  TensorView places =
      lowering.new_tensor("places", {tokens}, DataType::int64, StorageClass::activation);
  lowering.emit(Kernel::add, "places", {numbers, counter}, {places});
  return places;
}

// A full window rolls: both caches are copied, changed and copied back.
void roll_window(OperatorLowering& lowering, const TensorView& keys, const TensorView& values) {
  const TensorView new_keys =
      lowering.new_tensor("rolled_keys", keys.shape, keys.type, StorageClass::activation);
  const TensorView new_values =
      lowering.new_tensor("rolled_values", values.shape, values.type, StorageClass::activation);
  lowering.emit(Kernel::roll, "rolled_keys", {keys}, {new_keys});
  lowering.emit(Kernel::roll, "rolled_values", {values}, {new_values});
  const std::vector<StorageId> held{new_keys.storage, new_values.storage, lowering.input(0).storage,
                                    lowering.input(1).storage};
  lowering.emit(Kernel::copy, "keys", {new_keys}, {keys}, {.holds = held});
  lowering.emit(Kernel::copy, "values", {new_values}, {values}, {.holds = held});
}

void forward_static(OperatorLowering& lowering) {
  const TensorView key = lowering.input(0), value = lowering.input(1);
  const std::int64_t kept = attribute_of(lowering, "kept");
  const std::int64_t tokens = key.shape[token_axis].constant;
  const std::int64_t past = attribute_of(lowering, "past");
  const TensorView keys = lowering.new_lasting_tensor("keys", with_tokens(key.shape, kept),
                                                      key.type, StorageClass::kv_cache);
  const TensorView values = lowering.new_lasting_tensor("values", with_tokens(value.shape, kept),
                                                        value.type, StorageClass::kv_cache);
  const std::vector<StorageId> held{key.storage, value.storage};
  if (past + tokens <= kept) {
    const TensorView places = places_in_cache(lowering, tokens);
    const auto part = [&](const TensorView& cache) {
      return sliced(cache, token_axis, past, tokens);
    };
    // The rest of the cache stays as it is.
    lowering.emit(Kernel::copy, "keys", {key, places, part(keys)}, {part(keys)}, {.holds = held});
    lowering.emit(Kernel::copy, "values", {value, places, part(values)}, {part(values)},
                  {.holds = held});
  } else if (tokens == 1) {
    roll_window(lowering, keys, values);
  } else {  // a whole prompt that is longer than the window: attention reads it, the end is kept
    lowering.emit(Kernel::copy, "keys", {sliced(key, token_axis, tokens - kept, kept)}, {keys},
                  {.holds = held});
    lowering.emit(Kernel::copy, "values", {sliced(value, token_axis, tokens - kept, kept)},
                  {values}, {.holds = held});
    lowering.set_output(0, key);
    lowering.set_output(1, value);
    return;
  }
  lowering.set_output(0, attended_part(lowering, keys, 0));
  lowering.set_output(1, attended_part(lowering, values, 1));
}

/// The part of a cache that the new tokens are written to.
TensorView written_part(const OperatorLowering& lowering, const TensorView& cache,
                        const TensorView& fresh) {
  const std::int64_t kept = attribute_of(lowering, "kept");
  const std::int64_t tokens = std::min(fresh.shape[token_axis].constant, kept);
  const std::int64_t past = std::min(attribute_of(lowering, "past"), kept - tokens);
  TensorView part = sliced(cache, token_axis, past, tokens);
  part.shape[0] = fresh.shape[0];
  return part;
}

void forward_paged(OperatorLowering& lowering) {
  std::vector<TensorView> caches, written, scales;
  for (int i = 0; i < 2; ++i) {
    const Shape shape = of_all_users(
        with_tokens(lowering.input(i).shape, attribute_of(lowering, "kept")), lowering);
    caches.push_back(lowering.new_lasting_tensor(
        i == 0 ? "keys" : "values", shape, lowering.output_type(i).type, StorageClass::kv_cache));
    written.push_back(written_part(lowering, caches.back(), lowering.input(i)));
    if (!lowering.attributes().boolean("scale")) continue;
    scales.push_back(lowering.new_lasting_tensor(i == 0 ? "key_scale" : "value_scale", {},
                                                 DataType::float32, StorageClass::kv_cache));
  }
  std::vector<TensorView> reads{lowering.input(0), lowering.input(1)};
  reads.insert(reads.end(), scales.begin(), scales.end());
  // The rest of the cache stays as it is.
  reads.insert(reads.end(), written.begin(), written.end());
  lowering.emit(Kernel::copy, "forward", reads, written);
  for (int i = 0; i < 2; ++i) {
    lowering.set_output(i, attended_part(lowering, caches[static_cast<std::size_t>(i)], i));
  }
}

void forward_held(OperatorLowering& lowering) {
  for (int i = 0; i < 2; ++i) {
    const TensorType& type = lowering.output_type(i);
    lowering.set_output(i, lowering.new_lasting_tensor(i == 0 ? "keys" : "values", type.shape,
                                                       type.type, StorageClass::kv_cache));
  }
  if (!lowering.attributes().boolean("counts")) return;
  (void)lowering.new_lasting_tensor("cumulative_length", {}, DataType::int64,
                                    StorageClass::kv_cache);
}

void forward_encoder_states(OperatorLowering& lowering) {
  if (lowering.input_count() > 0) {
    lowering.keep_to_end(lowering.input());
    return lowering.set_output(0, lowering.input());
  }
  for (int i = 0; i < static_cast<int>(lowering.op().outputs.size()); ++i) {
    const TensorType& type = lowering.output_type(i);
    lowering.set_output(i, i == 0 ? lowering.new_lasting_tensor("states", type.shape, type.type,
                                                                StorageClass::activation)
                                  : lowering.new_lasting_tensor("input", type.shape, type.type,
                                                                StorageClass::input));
  }
}

void forward_held_variables(OperatorLowering& lowering) {
  std::vector<StorageId> held;
  for (int i = 1; i < lowering.input_count(); ++i) held.push_back(lowering.input(i).storage);
  lowering.also_hold(held);
  lowering.set_output(0, lowering.input());
}

// The result is laid out token by token; the kernel also writes each query's logsumexp.
void forward_paged_attention(OperatorLowering& lowering) {
  const TensorView query = lowering.input(0);
  const Shape shape = lowering.output_type().shape;
  const TensorView made =
      lowering.new_tensor("attended", {shape[0], shape[2], shape[1], shape[3]},
                          lowering.output_type().type, StorageClass::activation);
  const TensorView statistics = lowering.new_tensor("logsumexp", {shape[0], shape[1], shape[2]},
                                                    DataType::float32, StorageClass::temporary);
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  const TensorView result = permuted(made, swap);
  std::vector<TensorView> reads{query, lowering.input(1), lowering.input(2)};
  if (lowering.input_count() > 3) reads.push_back(lowering.input(3));
  lowering.emit(
      Kernel::attention_forward, "forward", std::move(reads), {result, statistics},
      {.flops = element_count(shape) * Affine(4) * lowering.input(1).shape[token_axis].constant});
  lowering.set_output(0, result);
}

void forward_mask(OperatorLowering& lowering) {
  const std::int64_t queries = attribute_of(lowering, "queries");
  const std::int64_t keys = attribute_of(lowering, "keys");
  const auto numbers = [&](std::string_view name, std::int64_t count) {
    TensorView made = lowering.new_tensor(name, {count}, DataType::int64, StorageClass::activation);
    lowering.emit(Kernel::iota, name, {}, {made});
    return made;
  };
  const TensorView rows = numbers("rows", queries);
  const TensorView columns = numbers("columns", keys);
  TensorView mask = lowering.new_tensor("mask", {1, 1, queries, keys}, DataType::boolean,
                                        StorageClass::activation);
  lowering.emit(Kernel::subtract, "forward", {rows, columns}, {mask});
  mask.is_view = true;
  mask.shape = lowering.output_type().shape;
  mask.strides[0] = 0;
  lowering.set_output(0, mask);
}

void forward_same_elements(OperatorLowering& lowering) {
  const Shape& shape = lowering.output_type().shape;
  if (const auto seen = reshaped(lowering.input(), shape)) return lowering.set_output(0, *seen);
  const TensorView copy = lowering.contiguous(lowering.input(), "contiguous");
  lowering.set_output(0, *reshaped(copy, shape));
}

void forward_last_position(OperatorLowering& lowering) {
  const TensorView& x = lowering.input();
  lowering.set_output(0, sliced(x, 1, x.shape[1] + Affine(-1), 1));
}

OperatorRow cache_row(std::string_view name, LowerRule forward) {
  return {.name = name,
          .doc = "keys and values of earlier tokens and of the new ones",
          .min_inputs = 2,
          .max_inputs = 2,
          .lowering = {.stowage = {}, .pytorch = {forward, nullptr}}};
}

}  // namespace

const OperatorRow& dynamic_cache() {
  static const OperatorRow row = cache_row("dynamic_cache", forward_dynamic);
  return row;
}

const OperatorRow& static_cache() {
  static const OperatorRow row = cache_row("static_cache", forward_static);
  return row;
}

const OperatorRow& paged_cache() {
  static const OperatorRow row = cache_row("paged_cache", forward_paged);
  return row;
}

const OperatorRow& held_cache() {
  static const OperatorRow row{.name = "held_cache",
                               .doc = "keys and values that an earlier step has written",
                               .min_inputs = 0,
                               .max_inputs = 0,
                               .lowering = {.stowage = {}, .pytorch = {forward_held, nullptr}}};
  return row;
}

const OperatorRow& encoder_states() {
  static const OperatorRow row{
      .name = "encoder_states",
      .doc = "an encoder's last hidden states, kept to the end",
      .min_inputs = 0,
      .max_inputs = 1,
      .lowering = {.stowage = {}, .pytorch = {forward_encoder_states, nullptr}}};
  return row;
}

const OperatorRow& held_variables() {
  static const OperatorRow row{
      .name = "held_variables",
      .doc = "its first input; the others live until it is made",
      .min_inputs = 1,
      .max_inputs = -1,
      .lowering = {.stowage = {}, .pytorch = {forward_held_variables, nullptr}}};
  return row;
}

const OperatorRow& paged_attention() {
  static const OperatorRow row{
      .name = "paged_attention",
      .doc = "attention over a cache in blocks",
      .min_inputs = 3,
      .max_inputs = 4,
      .lowering = {.stowage = {}, .pytorch = {forward_paged_attention, nullptr}}};
  return row;
}

const OperatorRow& cache_mask() {
  static const OperatorRow row{.name = "cache_mask",
                               .doc = "which keys of a cache each query sees",
                               .min_inputs = 0,
                               .max_inputs = 0,
                               .lowering = {.stowage = {}, .pytorch = {forward_mask, nullptr}}};
  return row;
}

const OperatorRow& same_elements() {
  static const OperatorRow row{
      .name = "same_elements",
      .doc = "its input under another shape",
      .lowering = {.stowage = {}, .pytorch = {forward_same_elements, nullptr}}};
  return row;
}

const OperatorRow& last_position() {
  static const OperatorRow row{
      .name = "last_position",
      .doc = "the last of a sequence's positions",
      .lowering = {.stowage = {}, .pytorch = {forward_last_position, nullptr}}};
  return row;
}

}  // namespace stowage::serving_rows
