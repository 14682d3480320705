// WrappedBackend: passes every call to the host backend, for tests that change one of them.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "gpu_probe/host/host_backend.hpp"

namespace stowage::test {

inline std::unique_ptr<Backend> host_backend() {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  return std::move(*backend);
}

class WrappedBackend : public Backend {
 public:
  explicit WrappedBackend(std::unique_ptr<Backend> inner = host_backend())
      : inner_(std::move(inner)) {}
  std::string name() const override { return "wrapped"; }
  KernelDevice gpu_kernels() const override { return inner_->gpu_kernels(); }
  Result<void> allocate(const ArenaSizes& sizes) override { return inner_->allocate(sizes); }
  void release() noexcept override { inner_->release(); }
  std::byte* gpu_base() override { return inner_->gpu_base(); }
  std::byte* host_base() override { return inner_->host_base(); }
  Result<Ticket> run(const KernelCall& call) override { return inner_->run(call); }
  Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* cpu, Bytes bytes,
                      std::span<const Ticket> after) override {
    return inner_->copy(direction, gpu, cpu, bytes, after);
  }
  Result<void> compute_waits_for(std::span<const Ticket> tickets) override {
    return inner_->compute_waits_for(tickets);
  }
  Result<void> host_waits_for(std::span<const Ticket> tickets) override {
    return inner_->host_waits_for(tickets);
  }
  Result<void> forget_tickets() override { return inner_->forget_tickets(); }
  Result<void> synchronize() override { return inner_->synchronize(); }
  Result<TimeSpan> ran(Ticket ticket) const override { return inner_->ran(ticket); }
  CopyCount copied(Direction direction) const override { return inner_->copied(direction); }
  void set_copy_timing(CopyTiming timing) override { inner_->set_copy_timing(timing); }
  Result<void> write_gpu(std::byte* gpu, const std::byte* source, Bytes bytes) override {
    return inner_->write_gpu(gpu, source, bytes);
  }
  Result<void> read_gpu(std::byte* to, const std::byte* gpu, Bytes bytes) override {
    return inner_->read_gpu(to, gpu, bytes);
  }
  Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) override {
    return inner_->fill_gpu(gpu, value, bytes);
  }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace stowage::test
