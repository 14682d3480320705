#include "gpu_probe/cuda/cublas.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "gpu_probe/driver/library_failure.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

using kernels::Matrices;
using kernels::Product;

constexpr std::int64_t most_alignment = 256;

std::optional<int> number_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return cublas::float32;
    case DataType::float64:
      return cublas::float64;
    case DataType::float16:
      return cublas::float16;
    case DataType::bfloat16:
      return cublas::bfloat16;
    default:
      return std::nullopt;
  }
}

int sums_of(DataType type, bool tf32) {
  if (type == DataType::float64) return cublas::compute_64;
  return tf32 && type == DataType::float32 ? cublas::compute_32_fast_tf32 : cublas::compute_32;
}

/// The largest power of two, up to 256, that divides the addresses of all matrices of a batch.
std::int64_t alignment_of(const Matrices& matrices) {
  auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(matrices.data));
  bits |= static_cast<std::uint64_t>(matrices.distance * element_size(matrices.type));
  bits |= most_alignment;
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

/// Throws LibraryFailure where cuBLAS has no such product.
void require_known(const Product& p) {
  if (!number_of(p.c.type) || p.a.type != p.c.type || p.b.type != p.c.type) {
    throw LibraryFailure(fmt::format("cuBLAS is given {} times {} to {}", to_string(p.a.type),
                                     to_string(p.b.type), to_string(p.c.type)));
  }
  if (p.batch > std::numeric_limits<std::int32_t>::max()) {
    throw LibraryFailure(fmt::format("{} products at once are too many for cuBLAS", p.batch));
  }
}

/// The types of sums and factors, and which of the two matrices are transposed.
LibraryObject product_descriptor(const cublas::LtFunctions& f, const Product& p, bool tf32) {
  const int factors = p.c.type == DataType::float64 ? cublas::float64 : cublas::float32;
  LibraryObject product = create_library_object(
      [&](void** at) { return f.create_product(at, sums_of(p.c.type, tf32), factors); },
      f.destroy_product, "cublasLtMatmulDescCreate");
  for (const auto& [side, matrices] :
       {std::pair(cublas::side_of_a, &p.b), std::pair(cublas::side_of_b, &p.a)}) {
    const int word = matrices->transposed ? cublas::transposed : cublas::not_transposed;
    must_succeed(f.set_product(product.get(), side, &word, sizeof word),
                 "cublasLtMatmulDescSetAttribute");
  }
  return product;
}

/// The layout of a batch of matrices. `sizes`: rows and columns as the product takes them, after a
/// transposition.
LibraryObject layout_descriptor(const cublas::LtFunctions& f, const Matrices& matrices,
                                std::pair<std::int64_t, std::int64_t> sizes, std::int64_t batch) {
  auto [rows, columns] = sizes;
  if (matrices.transposed) std::swap(rows, columns);
  const auto create = [&, rows = rows, columns = columns](void** at) {
    return f.create_layout(at, *number_of(matrices.type), static_cast<std::uint64_t>(columns),
                           static_cast<std::uint64_t>(rows), matrices.columns);
  };
  LibraryObject layout =
      create_library_object(create, f.destroy_layout, "cublasLtMatrixLayoutCreate");
  if (batch == 1) return layout;
  const auto count = static_cast<std::int32_t>(batch);
  must_succeed(f.set_layout(layout.get(), cublas::batch_count, &count, sizeof count),
               "cublasLtMatrixLayoutSetAttribute");
  must_succeed(f.set_layout(layout.get(), cublas::batch_distance, &matrices.distance,
                            sizeof matrices.distance),
               "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

}  // namespace

// cuBLAS reads matrices column by column. A matrix that is stored row by row is its transpose to
// cuBLAS, so cuBLAS is asked for the transposed product: c^T = b^T a^T, b before a.
class Cublas::PreparedProduct {
 public:
  /// Precondition: require_known(p). Throws LibraryFailure.
  PreparedProduct(const cublas::LtFunctions& functions, void* handle, const Product& p,
                  const Settings& settings)
      : functions_(functions),
        product_(product_descriptor(functions, p, settings.tf32)),
        b_(layout_descriptor(functions, p.b, {p.k, p.n}, p.batch)),
        a_(layout_descriptor(functions, p.a, {p.m, p.k}, p.batch)),
        c_(layout_descriptor(functions, p.c, {p.m, p.n}, p.batch)),
        algorithm_(first_algorithm(handle, p, settings)) {}

  /// Queues the product. Throws LibraryFailure.
  void run(void* handle, const Product& p, const Settings& settings) const {
    const bool wide = p.c.type == DataType::float64;
    const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const void* const alpha_at = wide ? static_cast<const void*>(&p.alpha) : &alpha;
    const void* const beta_at = wide ? static_cast<const void*>(&p.beta) : &beta;
    must_succeed(functions_.multiply(handle, product_.get(), alpha_at, p.b.data, b_.get(), p.a.data,
                                     a_.get(), beta_at, p.c.data, c_.get(), p.c.data, c_.get(),
                                     &algorithm_, settings.workspace,
                                     static_cast<std::size_t>(settings.workspace_bytes.count()),
                                     settings.stream),
                 "cublasLtMatmul");
  }

 private:
  /// What the algorithm must keep to: the workspace's size and the matrices' alignments.
  [[nodiscard]] LibraryObject preference_descriptor(const Product& p,
                                                    const Settings& settings) const {
    LibraryObject preference =
        create_library_object(functions_.create_preference, functions_.destroy_preference,
                              "cublasLtMatmulPreferenceCreate");
    const auto set = [&](int attribute, auto value) {
      must_succeed(functions_.set_preference(preference.get(), attribute, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    set(cublas::most_workspace, static_cast<std::uint64_t>(settings.workspace_bytes.count()));
    const std::array<const Matrices*, 4> matrices{&p.b, &p.a, &p.c, &p.c};
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      set(cublas::least_alignment[i], static_cast<std::uint32_t>(alignment_of(*matrices[i])));
    }
    return preference;
  }

  [[nodiscard]] cublas::Algorithm first_algorithm(void* handle, const Product& p,
                                                  const Settings& settings) const {
    const LibraryObject preference = preference_descriptor(p, settings);
    cublas::Proposal proposal{};
    int found = 0;
    const int status = functions_.propose(handle, product_.get(), b_.get(), a_.get(), c_.get(),
                                          c_.get(), preference.get(), 1, &proposal, &found);
    constexpr int not_supported = 15;  // the status where nothing is found
    if (status != not_supported) must_succeed(status, "cublasLtMatmulAlgoGetHeuristic");
    if (status != 0 || found == 0 || proposal.status != 0) {
      throw LibraryFailure(fmt::format(
          "cuBLAS has no algorithm here for a product of {} x {} x {} in {} with a workspace of {}",
          p.m, p.n, p.k, to_string(p.c.type), format_bytes(settings.workspace_bytes)));
    }
    return proposal.algorithm;
  }

  const cublas::LtFunctions& functions_;
  LibraryObject product_, b_, a_, c_;
  cublas::Algorithm algorithm_;
};

Result<std::unique_ptr<Cublas>> Cublas::open(const std::vector<std::string>& files) {
  std::string why = "no file was named";
  for (const std::string& file : files) {
    const SharedLibrary library(file);
    if (!library) {
      const char* const reason = dlerror();
      why = reason != nullptr ? reason : file + " was not found";
      continue;
    }
    cublas::LtFunctions functions;
#define STOWAGE_BIND(name, symbol, arguments) library.bind(#symbol, functions.name)&&
    const bool is_whole = STOWAGE_CUBLAS_LT_FUNCTIONS(STOWAGE_BIND) true;
#undef STOWAGE_BIND
    if (!is_whole) {
      why = fmt::format("{} is no cuBLASLt, or too old", file);
      continue;
    }
    try {
      return std::make_unique<Cublas>(
          functions, create_library_object(functions.create, functions.destroy, "cublasLtCreate"));
    } catch (const LibraryFailure& error) {
      return failure(error.what());
    }
  }
  return failure(fmt::format("cuBLAS was not found: {}", why));
}

Cublas::Cublas(const cublas::LtFunctions& functions, LibraryObject handle)
    : functions_(functions), handle_(std::move(handle)) {}

Cublas::~Cublas() = default;

Cublas::Form Cublas::form_of(const Product& p, const Settings& settings) {
  const auto number = [](const Matrices& m) {
    return 2 * static_cast<std::int64_t>(m.type) + (m.transposed ? 1 : 0);
  };
  return {p.m,
          p.n,
          p.k,
          p.batch,
          number(p.a),
          number(p.b),
          number(p.c),
          p.a.columns,
          p.b.columns,
          p.c.columns,
          p.a.distance,
          p.b.distance,
          p.c.distance,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.c),
          settings.workspace_bytes.count(),
          settings.tf32 ? 1 : 0};
}

const Cublas::PreparedProduct& Cublas::prepared(const Product& product, const Settings& settings) {
  std::unique_ptr<PreparedProduct>& of_form = prepared_[form_of(product, settings)];
  if (of_form == nullptr) {
    require_known(product);
    of_form = std::make_unique<PreparedProduct>(functions_, handle_.get(), product, settings);
  }
  return *of_form;
}

Result<void> Cublas::run(const Product& product, const Settings& settings) {
  try {
    prepared(product, settings).run(handle_.get(), product, settings);
    return {};
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

}  // namespace stowage
