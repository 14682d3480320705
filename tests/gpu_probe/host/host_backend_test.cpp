#include "gpu_probe/host/host_backend.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/device/cuda_driver.hpp"
#include "gpu_probe/host/guarded_memory.hpp"
#include "gpu_probe/run/executor.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

std::unique_ptr<Backend> host() {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  return std::move(*backend);
}

/// The signal that a child dies of when it writes a byte at `at`; 0: it lives.
int signal_of_write(std::byte* at) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    *static_cast<volatile std::byte*>(at) = std::byte{1};
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// The host backend with a kernel that writes past its first result.
class Careless final : public Backend {
 public:
  explicit Careless(Kernel kernel) : kernel_(kernel), inner_(host()) {}
  std::string name() const override { return "careless"; }
  KernelDevice gpu_kernels() const override { return inner_->gpu_kernels(); }
  Result<void> allocate(Bytes gpu, Bytes cpu) override { return inner_->allocate(gpu, cpu); }
  std::byte* gpu_base() override { return inner_->gpu_base(); }
  std::byte* host_base() override { return inner_->host_base(); }
  Result<Ticket> run(const KernelCall& call) override {
    auto ticket = inner_->run(call);
    const TensorArgument& y = call.writes.front();
    std::int64_t bytes = element_size(y.type);
    for (const std::int64_t size : y.shape) bytes *= size;
    if (call.kernel == kernel_) y.data[bytes] = std::byte{0};
    return ticket;
  }
  Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* cpu, Bytes bytes,
                      std::span<const Ticket> after) override {
    return inner_->copy(direction, gpu, cpu, bytes, after);
  }
  void compute_waits_for(std::span<const Ticket> tickets) override {
    inner_->compute_waits_for(tickets);
  }
  Result<void> synchronize() override { return inner_->synchronize(); }
  CopyCount copied(Direction direction) const override { return inner_->copied(direction); }
  void set_copy_timing(CopyTiming timing) override { inner_->set_copy_timing(timing); }
  void write_gpu(std::byte* gpu, const std::byte* source, Bytes bytes) override {
    inner_->write_gpu(gpu, source, bytes);
  }
  void read_gpu(std::byte* to, const std::byte* gpu, Bytes bytes) override {
    inner_->read_gpu(to, gpu, bytes);
  }

 private:
  Kernel kernel_;
  std::unique_ptr<Backend> inner_;
};

}  // namespace

TEST_CASE("the byte behind an arena is not writable, the last one is") {
  for (const std::int64_t size : {64, 4096, 100032}) {
    const auto memory = GuardedMemory::of(Bytes(size));
    REQUIRE(memory.has_value());
    std::memset(memory->base(), 1, static_cast<std::size_t>(size));
    CHECK(signal_of_write(memory->base() + size - 1) == 0);
    CHECK(signal_of_write(memory->base() + size) == SIGSEGV);
    CHECK(reinterpret_cast<std::uintptr_t>(memory->base()) % 64 == 0);
  }
  const auto aligned = GuardedMemory::of(Bytes(8192));
  CHECK(signal_of_write(aligned->base() - 1) == SIGSEGV);
}

TEST_CASE("memory that there is not is an error") {
  const auto memory = GuardedMemory::of(Bytes(std::int64_t{1} << 60));
  REQUIRE(!memory.has_value());
  CHECK(memory.error().front().message == "no " + format_bytes(Bytes(std::int64_t{1} << 60)) +
                                              " of host memory: Cannot allocate memory");
}

TEST_CASE("late copies take place when they are waited for, in their lane's order") {
  for (const bool is_late : {false, true}) {
    const auto backend = host();
    backend->set_copy_timing({is_late, is_late});
    REQUIRE(backend->allocate(64_B, 64_B).has_value());
    std::byte* const gpu = backend->gpu_base();
    std::byte* const cpu = backend->host_base();
    std::fill_n(gpu, 64, std::byte{1});
    std::fill_n(cpu, 64, std::byte{2});
    const auto first = backend->copy(Direction::h2d, gpu, cpu, 8_B, {});
    cpu[0] = std::byte{3};
    const auto second = backend->copy(Direction::h2d, gpu + 8, cpu, 8_B, {});
    REQUIRE((first && second));
    CHECK(gpu[0] == (is_late ? std::byte{1} : std::byte{2}));
    CHECK(backend->copied(Direction::h2d).copies == (is_late ? 0 : 2));
    backend->compute_waits_for(std::array{*second});
    CHECK(gpu[0] == (is_late ? std::byte{3} : std::byte{2}));  // the first went before it
    CHECK(gpu[8] == std::byte{3});
    CHECK(backend->copied(Direction::h2d).copies == 2);
    CHECK(backend->copied(Direction::h2d).bytes == 16_B);
    CHECK(backend->copied(Direction::d2h).copies == 0);
  }
}

TEST_CASE("a copy comes after what it waits for on the other lane") {
  const auto backend = host();
  backend->set_copy_timing({true, true});
  REQUIRE(backend->allocate(64_B, 64_B).has_value());
  std::byte* const gpu = backend->gpu_base();
  std::byte* const cpu = backend->host_base();
  gpu[0] = std::byte{7};
  const auto down = backend->copy(Direction::d2h, gpu, cpu, 1_B, {});
  REQUIRE(down.has_value());
  const auto up = backend->copy(Direction::h2d, gpu + 32, cpu, 1_B, std::array{*down});
  REQUIRE(up.has_value());
  backend->compute_waits_for(std::array{*up});
  CHECK(gpu[32] == std::byte{7});
}

TEST_CASE("a kernel that writes past its result is found in the padded run, by name") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const Plan plan = resident_plan(graph, 4);
  Careless backend(Kernel::relu_forward);
  const auto done = execute(plan, backend, {.padded = true, .timing = {}});
  REQUIRE(done.has_value());
  REQUIRE(done->overruns.size() == 1);
  const std::string& overrun = done->overruns.front();
  CHECK(overrun.rfind("bytes behind '", 0) == 0);
  CHECK(overrun.find("' on the GPU are spoilt after node 'relu") != std::string::npos);
  CHECK(!done->completed);
}

TEST_CASE("without a GPU the cuda backend says what is missing, with one that it runs no kernels") {
  const auto devices = cuda_devices();
  const auto backend = open_cuda_backend();
  REQUIRE(!backend.has_value());
  if (devices) {
    CHECK(backend.error().front().message ==
          "the cuda backend runs no kernels yet (" + devices->front().name + " is there)");
  } else {
    CHECK(backend.error().front().message == devices.error().front().message);
    CHECK(devices.error().front().message.find("CUDA driver") != std::string::npos);
  }
}

}  // namespace stowage::test
