#include "estimator/catalogue/torchao_linear.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage {

namespace {

constexpr std::int64_t tile_columns = 1024, tile_rows = 8;
/// torch._int_mm wants more rows than this, and sizes that are multiples of 8.
constexpr std::int64_t rows_without_int8_product = 16, int8_multiple = 8;

std::int64_t up_to_multiple(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of * of;
}

class TorchaoForward {
 public:
  TorchaoForward(OperatorLowering& lowering, const PackedLayout& layout)
      : lowering_(lowering),
        layout_(layout),
        x_(lowering.contiguous(lowering.input(), "input.contiguous")),
        type_(x_.type),
        in_(x_.shape.back().constant),
        out_(lowering.attributes().integer("features")),
        result_(lowering.output_type().shape),
        flops_(element_count(x_.shape) * Affine(2 * out_)) {}

  void run() {
    if (layout_.kind == PackedKind::int4) {
      multiply_int4();
    } else if (layout_.kind == PackedKind::int4_tiled) {
      multiply_tiles();
    } else if (layout_.inputs) {
      layout_.torchao == TorchaoBytes::int8 ? multiply_int8() : multiply_float8();
    } else if (layout_.torchao == TorchaoBytes::int8 && layout_.block_columns == 0) {
      multiply_converted();
    } else {
      multiply_restored();
    }
    lowering_.save("weight", weight());
  }

 private:
  [[nodiscard]] bool has_bias() const { return lowering_.attributes().boolean("bias"); }
  [[nodiscard]] const TensorView& weight() const { return lowering_.parameter(0); }
  [[nodiscard]] const TensorView& bias() const { return lowering_.parameter(1); }
  [[nodiscard]] const TensorView& table(int i) const {
    return lowering_.parameter((has_bias() ? 2 : 1) + i);
  }
  [[nodiscard]] Shape weight_shape() const { return {out_, in_}; }
  [[nodiscard]] bool is_wide() const { return type_ == DataType::float32; }
  [[nodiscard]] bool has_one_scale() const {
    return layout_.block_rows == 0 && layout_.block_columns == 0;
  }

  TensorView made(std::string_view suffix, const Shape& shape, DataType type) {
    return lowering_.new_tensor(suffix, shape, type, StorageClass::activation);
  }
  /// One operator of PyTorch's: its result, of that shape and type.
  TensorView step(std::string_view suffix, std::vector<TensorView> reads, const Shape& shape,
                  DataType type, std::vector<StorageId> holds = {},
                  Kernel kernel = Kernel::custom_forward) {
    TensorView result = made(suffix, shape, type);
    lowering_.emit(kernel, suffix, std::move(reads), {result},
                   {.holds = std::move(holds), .flops = element_count(shape)});
    return result;
  }
  void finish(std::vector<TensorView> reads, std::vector<StorageId> holds = {},
              std::vector<StorageId> temporaries = {}) {
    lowering_.emit(Kernel::custom_forward, "forward", std::move(reads), {lowering_.new_output()},
                   {.temporaries = std::move(temporaries),
                    .holds = std::move(holds),
                    .flops = element_count(result_)});
  }
  void product_into(std::string_view suffix, const TensorView& w, const TensorView& y) {
    lowering_.emit(Kernel::linear_forward, suffix, {x_, w}, {y}, {.flops = flops_});
  }
  void save_restored(const TensorView& w) {
    if (lowering_.training() && lowering_.input_needs_gradient()) lowering_.save("restored", w);
  }

  /// m = x w^T of the converted weight, y = m * scale, and y += bias in place.
  void multiply_converted() {
    const TensorView w = step("forward.weight", {weight()}, weight_shape(), type_);
    const TensorView m = made("forward.product", result_, type_);
    product_into("forward.product", w, m);
    save_restored(w);
    const Shape scales = has_one_scale() ? Shape{1} : Shape{out_};
    const TensorView scale =
        is_wide() ? table(0) : step("forward.scale", {table(0)}, scales, type_);
    std::vector<TensorView> reads{m, scale};
    if (has_bias()) reads.push_back(bias());
    finish(std::move(reads), {x_.storage});
    if (lowering_.training() && lowering_.input_needs_gradient()) lowering_.save("scale", scale);
  }

  TensorView restored_int8() {
    TensorView values = step("forward.values", {weight()}, weight_shape(), type_);
    if (layout_.has_zero_points) {
      const TensorView shifted = made("forward.shifted", weight_shape(), type_);
      const Affine zero_points =
          element_count(table(1).shape) * Affine(element_size(type_));  // in the inputs' format
      lowering_.emit(Kernel::custom_forward, "forward.shifted", {values, table(1)}, {shifted},
                     {.temporaries = {lowering_.new_temporary("forward.zero_points", zero_points)},
                      .flops = element_count(weight_shape())});
      values = shifted;
    }
    const TensorView scaled =
        step("forward.scaled", {values, table(0)}, weight_shape(), DataType::float32);
    return is_wide() ? scaled
                     : step("forward.weight", {scaled}, weight_shape(), type_, {}, Kernel::cast);
  }

  TensorView restored_float8() {
    const TensorView values = step("forward.values", {weight()}, weight_shape(), DataType::float32);
    std::vector<StorageId> holds{values.storage};
    TensorView scale = table(0);
    if (layout_.block_columns > 0) {
      scale = step("forward.spread_scale", {table(0)}, weight_shape(), DataType::float32);
      holds.push_back(scale.storage);
    }
    TensorView scaled = step("forward.scaled", {values, scale}, weight_shape(), DataType::float32);
    if (is_wide()) return scaled;
    return step("forward.weight", {scaled}, weight_shape(), type_, std::move(holds), Kernel::cast);
  }

  void multiply_restored() {
    const bool is_int8 = layout_.torchao == TorchaoBytes::int8;
    const TensorView w = is_int8 ? restored_int8() : restored_float8();
    if (!has_bias()) {
      product_into("forward", w, lowering_.new_output());
      return save_restored(w);
    }
    // int8 adds the bias in place, float8 out of place.
    if (is_int8) {
      const TensorView y = lowering_.new_output();
      product_into("forward.product", w, y);
      lowering_.emit(Kernel::custom_forward, "forward", {y, bias()}, {y}, {.holds = {w.storage}});
    } else {
      const TensorView m = made("forward.product", result_, type_);
      product_into("forward.product", w, m);
      finish({m, bias()}, {x_.storage});
    }
    save_restored(w);
  }

  /// One scale, or one a row of the inputs. A weight with one scale stands for inputs with one.
  [[nodiscard]] Shape input_scales() const {
    if (has_one_scale()) return {1};
    Shape scales = x_.shape;
    scales.back() = 1;
    return scales;
  }

  void multiply_int8() {
    const TensorView scales = made("forward.input_scales", input_scales(), DataType::float32);
    const TensorView zero_points =
        made("forward.input_zero_points", input_scales(), DataType::uint8);
    const TensorView rounded = made("forward.rounded", x_.shape, DataType::float32);
    const Affine inputs = element_count(x_.shape);
    lowering_.emit(Kernel::custom_forward, "forward.rounded", {x_}, {rounded, scales, zero_points},
                   {.temporaries = {lowering_.new_temporary("forward.scaled", inputs * Affine(4))},
                    .flops = inputs * Affine(4)});
    const TensorView q = step("forward.quantised", {rounded}, x_.shape, DataType::uint8);
    std::vector<StorageId> holds{x_.storage, q.storage, scales.storage, zero_points.storage};
    const TensorView c = int32_product(q);
    const TensorView scaled =
        step("forward.input_scaled", {c, scales}, result_, DataType::float32, holds);
    TensorView y = is_wide()
                       ? scaled
                       : step("forward.narrowed", {scaled}, result_, type_, holds, Kernel::cast);
    if (layout_.input_zero_points) y = corrected(y, scales, zero_points, holds);
    std::vector<TensorView> reads{y, table(0)};
    if (has_bias()) reads.push_back(bias());
    if (is_wide()) return finish(std::move(reads), std::move(holds));
    holds.push_back(y.storage);
    const TensorView wide =
        step("forward.scaled_product", std::move(reads), result_, DataType::float32, holds);
    finish({wide}, std::move(holds));
  }

  /// The product in int32: of a copy of the transposed weight, or of both operands in float32, or
  /// on the host.
  TensorView int32_product(const TensorView& q) {
    const bool fits = in_ % int8_multiple == 0 && out_ % int8_multiple == 0;
    const TensorView w =
        fits ? step("forward.transposed", {weight()}, weight_shape(), DataType::uint8) : weight();
    TensorView c = made("forward.product", result_, DataType::int32);
    NodeExtras extras{.holds = {x_.storage}, .flops = flops_};
    if (fits) {
      extras.attributes.set("float_rows", rows_without_int8_product);
      extras.temporaries = {
          lowering_.new_temporary("forward.float_inputs", element_count(q.shape) * Affine(4)),
          lowering_.new_temporary("forward.float_weight", Affine(4 * in_ * out_))};
    }
    lowering_.emit(Kernel::int8_product, "forward.product", {q, w}, {c}, std::move(extras));
    return c;
  }

  /// y less zero point * scale * the sum of the weight's row, which lives to the end in float32.
  TensorView corrected(const TensorView& y, const TensorView& scales, const TensorView& zero_points,
                       std::vector<StorageId>& holds) {
    const TensorView sums = step("forward.row_sums", {weight()}, {out_}, DataType::int64, holds);
    holds.push_back(sums.storage);
    const TensorView wide_zeros =
        step("forward.wide_zero_points", {zero_points}, input_scales(), DataType::float32, holds);
    holds.push_back(wide_zeros.storage);
    const TensorView correction =
        step("forward.correction", {wide_zeros, scales, sums}, result_, DataType::float32, holds);
    holds.push_back(correction.storage);
    TensorView narrow = correction;
    if (!is_wide()) {
      std::vector<StorageId> with_product = holds;
      with_product.push_back(y.storage);
      narrow = step("forward.narrow_correction", {correction}, result_, type_,
                    std::move(with_product), Kernel::cast);
    }
    return step("forward.corrected", {y, narrow}, result_, type_, holds);
  }

  void multiply_float8() {
    const TensorView scales = made("forward.input_scales", input_scales(), DataType::float32);
    const TensorView q = made("forward.quantised", x_.shape, DataType::uint8);
    // In float32, divided by the scales, clamped; float32 inputs are no copy.
    const Affine inputs = element_count(x_.shape);
    const Affine copies = inputs * Affine(is_wide() ? 8 : 12);
    lowering_.emit(Kernel::custom_forward, "forward.quantise", {x_}, {q, scales},
                   {.temporaries = {lowering_.new_temporary("forward.wide_inputs", copies)},
                    .flops = inputs * Affine(4)});
    std::vector<TensorView> reads{q, scales, weight(), table(0)};
    std::vector<StorageId> holds{x_.storage};
    if (!has_bias() || !is_wide()) {
      if (has_bias()) reads.push_back(bias());
      return finish(std::move(reads), std::move(holds));
    }
    const TensorView m =
        step("forward.product", std::move(reads), result_, DataType::float32, holds);
    holds.insert(holds.end(), {q.storage, scales.storage});
    finish({m, bias()}, std::move(holds));
  }

  void multiply_int4() {
    std::vector<TensorView> reads{x_, weight(), table(0), table(1)};
    if (!has_bias()) return finish(std::move(reads));
    const TensorView m = step("forward.product", std::move(reads), result_, type_);
    finish({m, bias()}, {x_.storage});
  }

  /// Rows of the result that only fill tiles are cut away by a view, and then a copy.
  void multiply_tiles() {
    TensorView narrow = x_;
    if (type_ != DataType::bfloat16) {
      narrow = step("forward.narrowed", {x_}, x_.shape, DataType::bfloat16, {}, Kernel::cast);
    }
    Shape padded_shape = x_.shape;
    padded_shape.back() = up_to_multiple(in_, tile_columns);
    const TensorView padded =
        step("forward.padded", {narrow}, padded_shape, DataType::bfloat16, {x_.storage});
    std::vector<StorageId> holds{x_.storage, padded.storage};
    std::vector<TensorView> reads{padded, weight(), table(0)};
    const bool is_padded = out_ % tile_rows != 0;
    const bool converts = type_ != DataType::bfloat16;
    if (!is_padded && !converts) {
      if (has_bias()) reads.push_back(bias());
      return finish(std::move(reads), std::move(holds));
    }
    Shape product = result_;
    product.back() = up_to_multiple(out_, tile_rows);
    TensorView y = step("forward.product", std::move(reads), product, DataType::bfloat16, holds);
    if (is_padded && converts) {
      y = step("forward.cut", {y}, result_, DataType::bfloat16, holds);
    }
    std::vector<TensorView> last{y};
    if (has_bias()) last.push_back(bias());
    finish(std::move(last), std::move(holds));
  }

  OperatorLowering& lowering_;
  const PackedLayout& layout_;
  TensorView x_;
  DataType type_;
  std::int64_t in_, out_;
  Shape result_;
  Affine flops_;
};

}  // namespace

void forward_torchao(OperatorLowering& lowering, const PackedLayout& layout) {
  TorchaoForward(lowering, layout).run();
}

}  // namespace stowage
