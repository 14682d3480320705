// A pretended cuBLASLt on the host's memory. It follows the definition: column by column, in
// double, rounded once to the result's format. All matrices of a product have one format. It
// remembers its last question.
#include "tests/gpu_probe/device/fake_driver/fake_blas.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"

namespace {

using stowage::body::FloatFormat;
using stowage::body::Floats;

FakeBlas state;

/// The format by cuBLAS's number; false: not one of those that it knows.
bool format_of(int number, FloatFormat& format) {
  switch (number) {
    case 0:
      return format = FloatFormat::float32, true;
    case 1:
      return format = FloatFormat::float64, true;
    case 2:
      return format = FloatFormat::float16, true;
    case 14:
      return format = FloatFormat::bfloat16, true;
    default:
      return false;
  }
}

struct FakeProduct {
  int sums, factors;
  int sides[2];  // 1: transposed; of a and b
};
struct FakeLayout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  std::int32_t batch;
  std::int64_t distance;
};
struct FakePreference {
  std::uint64_t workspace;
  std::uint32_t alignment[4];
};

Floats elements_of(const void* matrix, const FakeLayout& layout) {
  FloatFormat format{};
  if (!format_of(layout.type, format)) std::abort();  // refused when it was asked about
  return {const_cast<void*>(matrix), format};
}

/// Row and column as the product takes them.
double at(const void* matrix, const FakeLayout& layout, bool transposed, int i, std::uint64_t row,
          std::uint64_t column) {
  const auto down = static_cast<std::int64_t>(transposed ? column : row);
  const auto across = static_cast<std::int64_t>(transposed ? row : column);
  return elements_of(matrix, layout)
      .at<double>(i * layout.distance + across * layout.leading_dimension + down);
}

/// A factor in the format of factors.
double factor(const void* value, const FakeProduct& product) {
  return product.factors == 1 ? *static_cast<const double*>(value)
                              : *static_cast<const float*>(value);
}

std::uint64_t rows_of(const FakeLayout& layout, bool transposed) {
  return transposed ? layout.columns : layout.rows;
}
std::uint64_t columns_of(const FakeLayout& layout, bool transposed) {
  return transposed ? layout.rows : layout.columns;
}

constexpr int invalid = 7, internal_error = 14, not_supported = 15;

bool is_made_to_fail() { return ++state.calls == state.fail_at; }

template <class T>
int make(void** made, const T& value) {
  if (is_made_to_fail()) return internal_error;
  *made = new T(value);
  ++state.descriptors;
  return 0;
}
template <class T>
int end(void* made) {
  delete static_cast<T*>(made);
  --state.descriptors;
  return 0;
}

/// Whether the sizes fit each other, as cuBLASLt checks them.
bool fits(const FakeProduct& product, const FakeLayout& a, const FakeLayout& b,
          const FakeLayout& c) {
  const bool turned_a = product.sides[0] == 1, turned_b = product.sides[1] == 1;
  return rows_of(a, turned_a) == c.rows && columns_of(b, turned_b) == c.columns &&
         columns_of(a, turned_a) == rows_of(b, turned_b) && a.batch == b.batch &&
         b.batch == c.batch && a.rows > 0 && b.columns > 0;
}

}  // namespace

extern "C" {

FakeBlas* fakeBlas() { return &state; }

int cublasLtCreate(void** handle) {
  if (is_made_to_fail()) return internal_error;
  *handle = &state;
  ++state.handles;
  return state.create_fails;
}
int cublasLtDestroy(void*) {
  --state.handles;
  return 0;
}
int cublasLtMatmulDescCreate(void** product, int sums, int factors) {
  return make(product, FakeProduct{sums, factors, {0, 0}});
}
int cublasLtMatmulDescDestroy(void* product) { return end<FakeProduct>(product); }
int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, size_t bytes) {
  if (is_made_to_fail()) return internal_error;
  if (bytes != sizeof(int)) return invalid;
  std::memcpy(&static_cast<FakeProduct*>(product)->sides[attribute - 3], value, bytes);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading_dimension) {
  if (leading_dimension < static_cast<std::int64_t>(rows)) return invalid;
  return make(layout, FakeLayout{type, rows, columns, leading_dimension, 1, 0});
}
int cublasLtMatrixLayoutDestroy(void* layout) { return end<FakeLayout>(layout); }
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  if (is_made_to_fail()) return internal_error;
  FakeLayout& changed = *static_cast<FakeLayout*>(layout);
  if (bytes != (attribute == 5 ? sizeof changed.batch : sizeof changed.distance)) return invalid;
  std::memcpy(attribute == 5 ? static_cast<void*>(&changed.batch) : &changed.distance, value,
              bytes);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** preference) { return make(preference, FakePreference{}); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return end<FakePreference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value,
                                         size_t bytes) {
  if (is_made_to_fail()) return internal_error;
  FakePreference& changed = *static_cast<FakePreference*>(preference);
  if (bytes != (attribute == 1 ? sizeof changed.workspace : sizeof changed.alignment[0])) {
    return invalid;
  }
  std::memcpy(
      attribute == 1 ? static_cast<void*>(&changed.workspace) : &changed.alignment[attribute - 5],
      value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void*,
                                   void* preference, int wanted,
                                   stowage::cublas::Proposal* proposals, int* found) {
  if (is_made_to_fail()) return internal_error;
  ++state.questions;
  const auto& asked = *static_cast<FakePreference*>(preference);
  const auto& layout = *static_cast<FakeLayout*>(c);
  state.type = layout.type;
  state.compute = static_cast<FakeProduct*>(product)->sums;
  state.alignment = asked.alignment[0];
  *found = 0;
  if (wanted < 1 || !fits(*static_cast<FakeProduct*>(product), *static_cast<FakeLayout*>(a),
                          *static_cast<FakeLayout*>(b), layout)) {
    return invalid;
  }
  FloatFormat format{};
  if (!format_of(layout.type, format) || asked.workspace < state.wanted_workspace ||
      static_cast<FakeLayout*>(a)->type != layout.type ||
      static_cast<FakeLayout*>(b)->type != layout.type) {
    return not_supported;
  }
  const auto& described = *static_cast<FakeProduct*>(product);
  const bool wide = format == FloatFormat::float64;
  if ((described.sums == 70) != wide || (described.factors == 1) != wide) return not_supported;
  *found = 1;
  proposals[0] = {{{asked.workspace}}, state.wanted_workspace, 0, 1, {}};
  return 0;
}
int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* layout_of_a,
                   const void* b, void* layout_of_b, const void* beta, const void* c, void*,
                   void* d, void* layout_of_d, const stowage::cublas::Algorithm* algorithm,
                   void* workspace, size_t workspace_bytes, void* stream) {
  if (is_made_to_fail()) return internal_error;
  state.stream = stream;
  state.workspace = workspace;
  state.workspace_bytes = workspace_bytes;
  ++state.products;
  if (state.gemm_fails != 0) return state.gemm_fails;
  // An algorithm belongs to the workspace that it was asked with, and results are in place.
  if (algorithm->opaque[0] != workspace_bytes || c != d) return invalid;
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return invalid;
  const auto& described = *static_cast<FakeProduct*>(product);
  const auto& sides = described.sides;
  const auto& of_a = *static_cast<FakeLayout*>(layout_of_a);
  const auto& of_b = *static_cast<FakeLayout*>(layout_of_b);
  const auto& of_d = *static_cast<FakeLayout*>(layout_of_d);
  const double scale = factor(alpha, described), old = factor(beta, described);
  const Floats result = elements_of(d, of_d);
  for (int i = 0; i < of_d.batch; ++i) {
    for (std::uint64_t column = 0; column < of_d.columns; ++column) {
      for (std::uint64_t row = 0; row < of_d.rows; ++row) {
        double sum = 0;
        for (std::uint64_t term = 0; term < columns_of(of_a, sides[0] == 1); ++term) {
          sum += at(a, of_a, sides[0] == 1, i, row, term) *
                 at(b, of_b, sides[1] == 1, i, term, column);
        }
        const std::int64_t place = i * of_d.distance +
                                   static_cast<std::int64_t>(column) * of_d.leading_dimension +
                                   static_cast<std::int64_t>(row);
        result.set(place, scale * sum + (old == 0 ? 0 : old * result.at<double>(place)));
      }
    }
  }
  return 0;
}

}  // extern "C"
