#include "gpu_probe/cuda/cublas.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

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

Result<void> done(int status, const char* call) {
  if (status == 0) return {};
  return failure(fmt::format("{} fails with error {}", call, status));
}

/// Of all of a batch's matrices: the largest power of two that divides their addresses.
std::int64_t alignment_of(const Matrices& matrices) {
  auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(matrices.data));
  bits |= static_cast<std::uint64_t>(matrices.distance * element_size(matrices.type));
  bits |= most_alignment;
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

}  // namespace

// cuBLAS goes down columns: what it is given is the transpose of all, b before a.
class Cublas::Prepared {
 public:
  explicit Prepared(const cublas::LtFunctions& functions)
      : functions_(functions),
        product_(functions.destroy_product),
        a_(functions.destroy_layout),
        b_(functions.destroy_layout),
        c_(functions.destroy_layout) {}

  [[nodiscard]] Result<void> prepare(void* handle, const Product& p, const Settings& settings) {
    const auto type = number_of(p.c.type);
    if (!type || p.a.type != p.c.type || p.b.type != p.c.type) {
      return failure(fmt::format("cuBLAS is given {} times {} to {}", to_string(p.a.type),
                                 to_string(p.b.type), to_string(p.c.type)));
    }
    if (p.batch > std::numeric_limits<std::int32_t>::max()) {
      return failure(fmt::format("{} products at once are too many for cuBLAS", p.batch));
    }
    if (auto ok = describe(p, *type, settings.tf32); !ok) return ok;
    return choose(handle, p, settings);
  }

  [[nodiscard]] Result<void> run(void* handle, const Product& p, const Settings& settings) const {
    const bool wide = p.c.type == DataType::float64;
    const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const void* const alpha_at = wide ? static_cast<const void*>(&p.alpha) : &alpha;
    const void* const beta_at = wide ? static_cast<const void*>(&p.beta) : &beta;
    return done(functions_.multiply(handle, product_.get(), alpha_at, p.b.data, b_.get(), p.a.data,
                                    a_.get(), beta_at, p.c.data, c_.get(), p.c.data, c_.get(),
                                    &algorithm_, settings.workspace,
                                    static_cast<std::size_t>(settings.workspace_bytes.count()),
                                    settings.stream),
                "cublasLtMatmul");
  }

 private:
  /// Owns a descriptor.
  class Descriptor {
   public:
    using Destroy = int (*)(void*);
    explicit Descriptor(Destroy destroy) : destroy_(destroy) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
      if (value_ != nullptr) destroy_(value_);
    }
    [[nodiscard]] void** place() { return &value_; }
    [[nodiscard]] void* get() const { return value_; }

   private:
    Destroy destroy_;
    void* value_ = nullptr;
  };

  [[nodiscard]] Result<void> describe(const Product& p, int type, bool tf32) {
    const int factors = p.c.type == DataType::float64 ? cublas::float64 : cublas::float32;
    auto ok = done(functions_.create_product(product_.place(), sums_of(p.c.type, tf32), factors),
                   "cublasLtMatmulDescCreate");
    if (!ok) return ok;
    for (const auto& [side, matrices] :
         {std::pair(cublas::side_of_a, &p.b), std::pair(cublas::side_of_b, &p.a)}) {
      const int word = matrices->transposed ? cublas::transposed : cublas::not_transposed;
      ok = done(functions_.set_product(product_.get(), side, &word, sizeof word),
                "cublasLtMatmulDescSetAttribute");
      if (!ok) return ok;
    }
    if (ok = lay_out(b_, p.b, type, {p.k, p.n}, p.batch); !ok) return ok;
    if (ok = lay_out(a_, p.a, type, {p.m, p.k}, p.batch); !ok) return ok;
    return lay_out(c_, p.c, type, {p.m, p.n}, p.batch);
  }

  /// `sizes`: rows and columns as the product takes them.
  [[nodiscard]] Result<void> lay_out(Descriptor& layout, const Matrices& matrices, int type,
                                     std::pair<std::int64_t, std::int64_t> sizes,
                                     std::int64_t batch) {
    auto [rows, columns] = sizes;
    if (matrices.transposed) std::swap(rows, columns);
    auto ok =
        done(functions_.create_layout(layout.place(), type, static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), matrices.columns),
             "cublasLtMatrixLayoutCreate");
    if (!ok || batch == 1) return ok;
    const auto count = static_cast<std::int32_t>(batch);
    ok = done(functions_.set_layout(layout.get(), cublas::batch_count, &count, sizeof count),
              "cublasLtMatrixLayoutSetAttribute");
    if (!ok) return ok;
    return done(functions_.set_layout(layout.get(), cublas::batch_distance, &matrices.distance,
                                      sizeof matrices.distance),
                "cublasLtMatrixLayoutSetAttribute");
  }

  [[nodiscard]] Result<void> choose(void* handle, const Product& p, const Settings& settings) {
    Descriptor preference(functions_.destroy_preference);
    auto ok =
        done(functions_.create_preference(preference.place()), "cublasLtMatmulPreferenceCreate");
    if (!ok) return ok;
    const auto set = [&](int attribute, auto value) {
      return done(functions_.set_preference(preference.get(), attribute, &value, sizeof value),
                  "cublasLtMatmulPreferenceSetAttribute");
    };
    const auto bytes = static_cast<std::uint64_t>(settings.workspace_bytes.count());
    if (ok = set(cublas::most_workspace, bytes); !ok) return ok;
    const std::array<const Matrices*, 4> matrices{&p.b, &p.a, &p.c, &p.c};
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      ok = set(cublas::least_alignment[i], static_cast<std::uint32_t>(alignment_of(*matrices[i])));
      if (!ok) return ok;
    }
    cublas::Proposal proposal{};
    int found = 0;
    const int status = functions_.propose(handle, product_.get(), b_.get(), a_.get(), c_.get(),
                                          c_.get(), preference.get(), 1, &proposal, &found);
    constexpr int not_supported = 15;  // what it says where nothing is found
    if (status != 0 && status != not_supported) {
      return done(status, "cublasLtMatmulAlgoGetHeuristic");
    }
    if (status != 0 || found == 0 || proposal.status != 0) {
      return failure(fmt::format(
          "cuBLAS has no algorithm here for a product of {} x {} x {} in {} with a workspace of {}",
          p.m, p.n, p.k, to_string(p.c.type), format_bytes(settings.workspace_bytes)));
    }
    algorithm_ = proposal.algorithm;
    return {};
  }

  const cublas::LtFunctions& functions_;
  Descriptor product_, a_, b_, c_;
  cublas::Algorithm algorithm_{};
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
    auto blas = std::make_unique<Cublas>();
    cublas::LtFunctions& f = blas->functions_;
#define STOWAGE_BIND(name, symbol, arguments) library.bind(#symbol, f.name)&&
    const bool is_whole = STOWAGE_CUBLAS_LT_FUNCTIONS(STOWAGE_BIND) true;
#undef STOWAGE_BIND
    if (!is_whole) {
      why = fmt::format("{} is no cuBLASLt, or too old", file);
      continue;
    }
    if (auto ok = done(f.create(&blas->handle_), "cublasLtCreate"); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    return blas;
  }
  return failure(fmt::format("cuBLAS was not found: {}", why));
}

Cublas::~Cublas() {
  prepared_.clear();
  if (handle_ != nullptr) functions_.destroy(handle_);
}

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

Result<const Cublas::Prepared*> Cublas::prepared(const Product& product, const Settings& settings) {
  std::unique_ptr<Prepared>& of_form = prepared_[form_of(product, settings)];
  if (of_form == nullptr) {
    auto made = std::make_unique<Prepared>(functions_);
    if (auto ok = made->prepare(handle_, product, settings); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    of_form = std::move(made);
  }
  return of_form.get();
}

Result<void> Cublas::run(const Product& product, const Settings& settings) {
  const auto ready = prepared(product, settings);
  if (!ready) return tl::unexpected(ready.error());
  return (*ready)->run(handle_, product, settings);
}

}  // namespace stowage
