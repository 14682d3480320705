#include "gpu_probe/cuda/cublas.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

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

Result<void> done(int status, const char* call) {
  if (status == 0) return {};
  return failure(fmt::format("{} fails with error {}", call, status));
}

/// cuBLAS's plain calls count in 32 bits.
bool fits(const kernels::Product& p) {
  for (const std::int64_t size : {p.m, p.n, p.k, p.batch, p.a.columns, p.b.columns, p.c.columns}) {
    if (size > std::numeric_limits<int>::max()) return false;
  }
  return true;
}

}  // namespace

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
    Functions& f = blas->functions_;
    if (!library.bind("cublasCreate_v2", f.create) ||
        !library.bind("cublasDestroy_v2", f.destroy) ||
        !library.bind("cublasSetStream_v2", f.set_stream) ||
        !library.bind("cublasSetWorkspace_v2", f.set_workspace) ||
        !library.bind("cublasGemmStridedBatchedEx", f.gemm)) {
      why = fmt::format("{} is no cuBLAS, or too old", file);
      continue;
    }
    if (auto ok = done(f.create(&blas->handle_), "cublasCreate"); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    return blas;
  }
  return failure(fmt::format("cuBLAS was not found: {}", why));
}

Cublas::~Cublas() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

Result<void> Cublas::run(const kernels::Product& p, const Settings& settings) const {
  const auto type = number_of(p.c.type);
  if (!type || p.a.type != p.c.type || p.b.type != p.c.type) {
    return failure(fmt::format("cuBLAS is given {} times {} to {}", to_string(p.a.type),
                               to_string(p.b.type), to_string(p.c.type)));
  }
  if (!fits(p)) {
    return failure(fmt::format("a product of {} x {} x {} is too large for cuBLAS's 32-bit sizes",
                               p.m, p.n, p.k));
  }
  if (auto ok = done(functions_.set_stream(handle_, settings.stream), "cublasSetStream"); !ok) {
    return ok;
  }
  // Setting the stream has taken the workspace away.
  if (settings.workspace != nullptr) {
    auto ok =
        done(functions_.set_workspace(handle_, settings.workspace,
                                      static_cast<std::size_t>(settings.workspace_bytes.count())),
             "cublasSetWorkspace");
    if (!ok) return ok;
  }
  const bool wide = p.c.type == DataType::float64;
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const void* const alpha_at = wide ? static_cast<const void*>(&p.alpha) : &alpha;
  const void* const beta_at = wide ? static_cast<const void*>(&p.beta) : &beta;
  const int compute = wide ? cublas::compute_64
                      : settings.tf32 && p.c.type == DataType::float32
                          ? cublas::compute_32_fast_tf32
                          : cublas::compute_32;
  const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
  const auto side = [](const kernels::Matrices& m) {
    return m.transposed ? cublas::transposed : cublas::not_transposed;
  };
  // cuBLAS goes down columns: what it is given is the transpose of all, b before a.
  return done(functions_.gemm(handle_, side(p.b), side(p.a), whole(p.n), whole(p.m), whole(p.k),
                              alpha_at, p.b.data, *type, whole(p.b.columns), p.b.distance, p.a.data,
                              *type, whole(p.a.columns), p.a.distance, beta_at, p.c.data, *type,
                              whole(p.c.columns), p.c.distance, whole(p.batch), compute,
                              cublas::usual_algorithm),
              "cublasGemmStridedBatchedEx");
}

}  // namespace stowage
