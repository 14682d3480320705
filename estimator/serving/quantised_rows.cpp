// transformers' quantised caches, kernel by kernel.
//
// int4 and int2 (QuantoQuantizedLayer): the first step attends to its keys and values as computed,
// then quantises them all. A later step restores all that is packed, joins it with the newest
// tokens that are kept as computed and with its own, and attends to the result; where the newest
// ones reach the residual length, all is quantised anew. fp8 (Fp8QuantizedLayer): a scale a layer
// from the first step; each step joins the bytes and restores all of them, through float32.
//
// Sources: transformers 5.24, cache_utils.py; optimum-quanto 0.2.7, tensor/optimizers/
// max_optimizer.py, library/quantize.py, tensor/packed.py, tensor/qbits.py,
// library/extensions/cuda/ unpack.cu. Traced (tests/reference/serving_quantised.py).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "estimator/serving/serving_rows.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage::serving_rows {

namespace {

constexpr std::size_t tokens_axis = 2;
constexpr std::int64_t bits_of_byte = 8;

Shape of_tokens(Shape shape, std::int64_t tokens) {
  shape[tokens_axis] = tokens;
  return shape;
}

struct Packed {
  TensorView data, scale, shift;
};

class PackedCache {
 public:
  explicit PackedCache(OperatorLowering& lowering) : lowering_(lowering) {}

  void forward() {
    const std::int64_t past = attribute("past");
    if (past == 0) {
      (void)quantise("keys", lowering_.input(0), {});
      (void)quantise("values", lowering_.input(1), {lowering_.input(0).storage});
      lowering_.set_output(0, lowering_.input(0));
      lowering_.set_output(1, lowering_.input(1));
      return;
    }
    const std::int64_t tokens = lowering_.input(0).shape[tokens_axis].constant;
    const std::int64_t newest = attribute("newest");
    is_full_ = newest + tokens >= attribute("residual");
    held_ = {lowering_.input(0).storage, lowering_.input(1).storage};
    Restored keys = restored("keys", 0, past - newest);
    Restored values = restored("values", 1, past - newest);
    held_.insert(held_.end(), {keys.view.storage, values.view.storage});
    for (Restored* one : {&keys, &values}) {
      if (newest > 0) one->newest = newest_tokens(*one, newest);
    }
    for (Restored* one : {&keys, &values}) join(*one);
    if (is_full_) {
      quantise_again(keys);
      quantise_again(values);
    } else {
      keep_newest(keys);
      keep_newest(values);
    }
  }

 private:
  struct Restored {
    std::string name;
    int input = 0;
    Packed packed;
    TensorView view;  ///< what is packed, as it was computed but for rounding
    std::optional<TensorView> newest = {};
    TensorView all = {};
  };

  [[nodiscard]] std::int64_t attribute(std::string_view name) const {
    return lowering_.attributes().integer(name);
  }

  TensorView made(const std::string& name, const Shape& shape, DataType type,
                  StorageClass of = StorageClass::activation) {
    return lowering_.new_tensor(name, shape, type, of);
  }

  /// The elements as one row per group that shares a scale.
  [[nodiscard]] Affine groups_of(const Shape& shape) const {
    return quotient(element_count(shape), Affine(attribute("group")));
  }

  /// The number of rows of packed bytes; with an odd number of groups the last row is not full.
  [[nodiscard]] Affine packed_rows(const Affine& groups) const {
    const std::int64_t in_byte = bits_of_byte / attribute("bits");
    if (divides(Affine(in_byte), groups)) return quotient(groups, Affine(in_byte));
    return Affine((groups.at(attribute("users")) + in_byte - 1) / in_byte);
  }

  [[nodiscard]] DataType computed_type(int input) const { return lowering_.input(input).type; }

  // MaxOptimizer, quantize_affine, pack_weights. `held`: storages that the caller holds.
  Packed quantise(const std::string& name, const TensorView& states,
                  const std::vector<StorageId>& held) {
    const auto emit = [&](Kernel kernel, const std::string& what, KernelArguments reads,
                          const TensorView& written, std::vector<StorageId> more = {}) {
      more.insert(more.end(), held.begin(), held.end());
      lowering_.emit(kernel, name + "." + what, std::move(reads), {written},
                     {.holds = std::move(more)});
    };
    const TensorView x = lowering_.contiguous(states, name + ".contiguous");
    const std::int64_t group = attribute("group");
    const Affine groups = groups_of(x.shape);
    const Shape one_each{groups, 1}, all{groups, group};
    const TensorView rows = *reshaped(x, all);
    const auto of_groups = [&](const char* what) {
      return made(name + "." + what, one_each, x.type);
    };
    const TensorView least = of_groups("amin"), most = of_groups("amax");
    emit(Kernel::statistic_forward, "amin", {rows}, least);
    emit(Kernel::statistic_forward, "amax", {rows}, most, {least.storage});
    const TensorView width = of_groups("width");
    emit(Kernel::subtract, "width", {most, least}, width);
    Packed packed{.data = {},
                  .scale = made(name + ".scale", one_each, x.type, StorageClass::kv_cache),
                  .shift = made(name + ".shift", one_each, x.type, StorageClass::kv_cache)};
    emit(Kernel::scale, "scale", {width}, packed.scale);
    emit(Kernel::scale, "shift", {least}, packed.shift, {most.storage});
    const auto step = [&](Kernel kernel, const char* what, KernelArguments reads,
                          std::vector<StorageId> more = {}) {
      TensorView result = made(name + "." + what, all, x.type);
      emit(kernel, what, std::move(reads), result, std::move(more));
      return result;
    };
    const TensorView shifted = step(Kernel::add, "shifted", {rows, packed.shift});
    const TensorView scaled = step(Kernel::divide, "scaled", {shifted, packed.scale});
    const TensorView rounded = step(Kernel::unary_forward, "rounded", {scaled});
    const TensorView clamped = step(Kernel::unary_forward, "clamped", {rounded});
    const TensorView bytes = made(name + ".bytes", all, DataType::uint8);
    emit(Kernel::cast, "bytes", {clamped}, bytes, {rounded.storage});
    packed.data = pack(name, bytes, groups, emit);
    for (const TensorView& part : {packed.data, packed.scale, packed.shift}) {
      lowering_.keep_to_end(part);
    }
    if (x.storage != states.storage) lowering_.also_hold(std::vector{x.storage});
    return packed;
  }

  template <typename Emit>
  TensorView pack(const std::string& name, const TensorView& bytes, const Affine& groups,
                  const Emit& emit) {
    const Shape shape{packed_rows(groups), attribute("group")};
    TensorView data = made(name + ".packed", shape, DataType::uint8, StorageClass::kv_cache);
    emit(Kernel::fill, "packed", {}, data, {bytes.storage});
    for (std::int64_t i = 0; i < bits_of_byte / attribute("bits"); ++i) {
      const std::string part = fmt::format("part{}", i);
      const TensorView moved = made(fmt::format("{}.{}", name, part), shape, DataType::uint8);
      emit(Kernel::unary_forward, part, {bytes}, moved);
      emit(Kernel::logical, part + ".or", {data, moved}, data, {bytes.storage});
    }
    return data;
  }

  // QBitsDequantizer. The packed bytes are kept, or released if everything is packed again.
  Restored restored(const std::string& name, int input, std::int64_t tokens) {
    Restored result{.name = name, .input = input, .packed = {}, .view = {}};
    const Shape shape = of_tokens(lowering_.output_type(input).shape, tokens);
    const Affine groups = groups_of(shape);
    const std::int64_t group = attribute("group");
    const DataType type = computed_type(input);
    const auto before = [&](const char* what, const Shape& of, DataType stored) {
      const std::string full = name + "." + what + ".before";
      return is_full_ ? lowering_.new_inherited_tensor(full, of, stored, StorageClass::kv_cache)
                      : lowering_.new_lasting_tensor(full, of, stored, StorageClass::kv_cache);
    };
    const Affine rows = packed_rows(groups);
    result.packed = {.data = before("packed", {rows, group}, DataType::uint8),
                     .scale = before("scale", {groups, 1}, type),
                     .shift = before("shift", {groups, 1}, type)};
    const std::int64_t in_byte = bits_of_byte / attribute("bits");
    const TensorView bytes =
        made(name + ".unpacked", {rows * Affine(in_byte), group}, DataType::uint8);
    lowering_.emit(Kernel::cast, name + ".unpacked", {result.packed.data}, {bytes},
                   {.holds = held_});
    const Shape all{groups, group};
    const TensorView seen = sliced(bytes, 0, 0, groups);
    const TensorView values = made(name + ".restored", all, type);
    lowering_.emit(Kernel::multiply, name + ".restored", {seen, result.packed.scale}, {values},
                   {.holds = held_});
    lowering_.emit(Kernel::subtract, name + ".shifted_back", {values, result.packed.shift},
                   {values}, {.holds = {bytes.storage}});
    result.view = *reshaped(values, shape);
    held_.push_back(result.packed.data.storage);
    return result;
  }

  TensorView newest_tokens(const Restored& of, std::int64_t newest) {
    const Shape shape = of_tokens(lowering_.output_type(of.input).shape, newest);
    return lowering_.new_inherited_tensor(of.name + ".newest.before", shape,
                                          computed_type(of.input), StorageClass::kv_cache);
  }

  void join(Restored& one) {
    one.all = made(one.name, lowering_.output_type(one.input).shape, computed_type(one.input));
    std::vector<TensorView> parts{one.view};
    if (one.newest) parts.push_back(*one.newest);
    parts.push_back(lowering_.input(one.input));
    lowering_.emit(Kernel::concatenate, one.name, parts, {one.all}, {.holds = held_});
    lowering_.set_output(one.input, one.all);
    held_.push_back(one.all.storage);
    if (one.newest && is_full_) held_.push_back(one.newest->storage);
  }

  void quantise_again(const Restored& one) {
    std::vector<StorageId> held = held_;
    held.insert(held.end(), {one.packed.scale.storage, one.packed.shift.storage});
    (void)quantise(one.name + ".again", one.all, held);
    std::erase(held_, one.packed.data.storage);
  }

  void keep_newest(const Restored& one) {
    const std::int64_t tokens = lowering_.input(one.input).shape[tokens_axis].constant;
    const Shape shape =
        of_tokens(lowering_.output_type(one.input).shape, attribute("newest") + tokens);
    const TensorView kept = lowering_.new_tensor(one.name + ".newest", shape,
                                                 computed_type(one.input), StorageClass::kv_cache);
    std::vector<TensorView> parts;
    if (one.newest) parts.push_back(*one.newest);
    parts.push_back(lowering_.input(one.input));
    lowering_.emit(Kernel::concatenate, one.name + ".newest", parts, {kept}, {.holds = held_});
    lowering_.keep_to_end(kept);
  }

  OperatorLowering& lowering_;
  bool is_full_ = false;         // the newest tokens reach the residual length
  std::vector<StorageId> held_;  // by variables of update()
};

void forward_packed(OperatorLowering& lowering) { PackedCache(lowering).forward(); }

/// float32(x) / scale, as fp8.
TensorView in_fp8(OperatorLowering& lowering, const std::string& name, const TensorView& states,
                  const TensorView& scale, const std::vector<StorageId>& held) {
  const auto made = [&](const char* what, DataType type, StorageClass of) {
    return lowering.new_tensor(name + "." + what, states.shape, type, of);
  };
  TensorView wide = states;
  if (states.type != DataType::float32) {
    wide = made("wide", DataType::float32, StorageClass::activation);
    lowering.emit(Kernel::cast, name + ".wide", {states}, {wide}, {.holds = held});
  }
  const TensorView scaled = made("scaled", DataType::float32, StorageClass::activation);
  lowering.emit(Kernel::divide, name + ".scaled", {wide, scale}, {scaled}, {.holds = held});
  TensorView bytes = made("fp8", DataType::uint8, StorageClass::kv_cache);
  lowering.emit(Kernel::cast, name + ".fp8", {scaled}, {bytes}, {.holds = held});
  return bytes;
}

// The scale of a layer's keys, and that of its values, is computed from their maximum.
void start_fp8(OperatorLowering& lowering) {
  for (int i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "keys" : "values";
    const TensorView& states = lowering.input(i);
    const std::vector<StorageId> held{lowering.input(0).storage, lowering.input(1).storage};
    const auto number = [&](const char* what, DataType type, StorageClass of) {
      return lowering.new_tensor(name + "." + what, {}, type, of);
    };
    const TensorView sizes =
        lowering.new_tensor(name + ".abs", states.shape, states.type, StorageClass::activation);
    lowering.emit(Kernel::unary_forward, name + ".abs", {states}, {sizes}, {.holds = held});
    const TensorView most = number("amax", states.type, StorageClass::activation);
    lowering.emit(Kernel::statistic_forward, name + ".amax", {sizes}, {most}, {.holds = held});
    const TensorView scale = number("scale", DataType::float32, StorageClass::kv_cache);
    lowering.emit(Kernel::scale, name + ".scale", {most}, {scale}, {.holds = held});
    const TensorView bytes = in_fp8(lowering, name, states, scale, held);
    lowering.keep_to_end(scale);
    lowering.keep_to_end(bytes);
    lowering.set_output(i, states);
  }
}

/// Quantises the new keys and values by the scales of the first step, joins them with the cached
/// bytes, and restores all of them in the computed type.
void forward_fp8(OperatorLowering& lowering) {
  const std::int64_t past = lowering.attributes().integer("past");
  if (past == 0) return start_fp8(lowering);
  std::vector<StorageId> held{lowering.input(0).storage, lowering.input(1).storage};
  std::vector<TensorView> scales, before, fresh, all;
  for (int i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "keys" : "values";
    const Shape shape = of_tokens(lowering.output_type(i).shape, past);
    before.push_back(lowering.new_inherited_tensor(name + ".before", shape, DataType::uint8,
                                                   StorageClass::kv_cache));
    scales.push_back(lowering.new_lasting_tensor(name + ".scale", {}, DataType::float32,
                                                 StorageClass::kv_cache));
  }
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = i == 0 ? "keys" : "values";
    fresh.push_back(in_fp8(lowering, name + ".new", lowering.input(i), scales[at], held));
    held.push_back(fresh.back().storage);
  }
  // update() holds the old and the new bytes in variables to its end.
  held.insert(held.end(), {before[0].storage, before[1].storage});
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = i == 0 ? "keys" : "values";
    all.push_back(lowering.new_tensor(name, lowering.output_type(i).shape, DataType::uint8,
                                      StorageClass::kv_cache));
    lowering.emit(Kernel::concatenate, name, {before[at], fresh[at]}, {all[at]}, {.holds = held});
    lowering.keep_to_end(all[at]);
  }
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = i == 0 ? "keys" : "values";
    const DataType type = lowering.input(i).type;
    const auto made = [&](const char* what, DataType of) {
      return lowering.new_tensor(name + "." + what, lowering.output_type(i).shape, of,
                                 StorageClass::activation);
    };
    const TensorView wide = made("wide", DataType::float32);
    lowering.emit(Kernel::cast, name + ".wide", {all[at]}, {wide}, {.holds = held});
    TensorView states = made("restored", DataType::float32);
    lowering.emit(Kernel::multiply, name + ".restored", {wide, scales[at]}, {states},
                  {.holds = held});
    if (type != DataType::float32) {
      const TensorView narrow = made("narrow", type);
      lowering.emit(Kernel::cast, name + ".narrow", {states}, {narrow}, {.holds = held});
      states = narrow;
    }
    lowering.set_output(i, states);
    held.push_back(states.storage);
  }
}

OperatorRow quantised_row(std::string_view name, std::string_view doc, LowerRule forward) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 2,
          .max_inputs = 2,
          .lowering = {.stowage = {}, .pytorch = {forward, nullptr}}};
}

}  // namespace

const OperatorRow& packed_cache() {
  static const OperatorRow row = quantised_row(
      "packed_cache", "keys and values packed in a few bits, and the newest as computed",
      forward_packed);
  return row;
}

const OperatorRow& fp8_cache() {
  static const OperatorRow row =
      quantised_row("fp8_cache", "keys and values in fp8, with a scale each", forward_fp8);
  return row;
}

}  // namespace stowage::serving_rows
