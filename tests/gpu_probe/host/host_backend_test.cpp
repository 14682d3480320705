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
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

/// The signal that ends a child process that writes a byte at `at`; 0: none does.
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
class OverrunningBackend final : public WrappedBackend {
 public:
  explicit OverrunningBackend(Kernel kernel) : kernel_(kernel) {}
  Result<Ticket> run(const KernelCall& call) override {
    auto ticket = WrappedBackend::run(call);
    const TensorArgument& y = call.writes.front();
    std::int64_t bytes = element_size(y.type);
    for (const std::int64_t size : y.shape) bytes *= size;
    if (call.kernel == kernel_) y.data[bytes] = std::byte{0};
    return ticket;
  }

 private:
  Kernel kernel_;
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
    const auto backend = host_backend();
    backend->set_copy_timing({is_late, is_late});
    REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
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
    REQUIRE(backend->compute_waits_for(std::array{*second}).has_value());
    CHECK(gpu[0] == (is_late ? std::byte{3} : std::byte{2}));  // the first copy went before it
    CHECK(gpu[8] == std::byte{3});
    CHECK(backend->copied(Direction::h2d).copies == 2);
    CHECK(backend->copied(Direction::h2d).bytes == 16_B);
    CHECK(backend->copied(Direction::d2h).copies == 0);
  }
}

TEST_CASE("a copy comes after what it waits for on the other lane") {
  const auto backend = host_backend();
  backend->set_copy_timing({true, true});
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  std::byte* const gpu = backend->gpu_base();
  std::byte* const cpu = backend->host_base();
  gpu[0] = std::byte{7};
  const auto down = backend->copy(Direction::d2h, gpu, cpu, 1_B, {});
  REQUIRE(down.has_value());
  const auto up = backend->copy(Direction::h2d, gpu + 32, cpu, 1_B, std::array{*down});
  REQUIRE(up.has_value());
  REQUIRE(backend->compute_waits_for(std::array{*up}).has_value());
  CHECK(gpu[32] == std::byte{7});
}

TEST_CASE("a copy has its times once it has run, and a new allocation forgets them") {
  const auto backend = host_backend();
  backend->set_copy_timing({true, true});
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  const auto first =
      backend->copy(Direction::h2d, backend->gpu_base(), backend->host_base(), 8_B, {});
  const auto second =
      backend->copy(Direction::h2d, backend->gpu_base() + 8, backend->host_base(), 8_B, {});
  REQUIRE((first && second));
  CHECK(backend->ran(*first).error().front().message == "ticket 0 has not run");
  REQUIRE(backend->synchronize().has_value());
  const auto a = backend->ran(*first), b = backend->ran(*second);
  REQUIRE((a && b));
  CHECK(0 <= a->begin);
  CHECK(a->begin <= a->end);
  CHECK(a->end <= b->begin);
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  CHECK(!backend->ran(*first).has_value());
  CHECK(!backend->ran({}).has_value());
}

TEST_CASE("a fill writes its bytes and no others") {
  const auto backend = host_backend();
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  REQUIRE(backend->fill_gpu(backend->gpu_base(), std::byte{1}, 64_B).has_value());
  REQUIRE(backend->fill_gpu(backend->gpu_base() + 8, std::byte{2}, 16_B).has_value());
  CHECK(std::count(backend->gpu_base(), backend->gpu_base() + 64, std::byte{2}) == 16);
  CHECK(backend->gpu_base()[7] == std::byte{1});
  CHECK(backend->gpu_base()[24] == std::byte{1});
}

TEST_CASE("a kernel that writes past its result is found in the padded run, by name") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const Plan plan = resident_plan(graph, 4);
  OverrunningBackend backend(Kernel::relu_forward);
  const auto done = execute(plan, backend, {.padded = true, .timing = {}});
  REQUIRE(done.has_value());
  REQUIRE(done->overruns.size() == 1);
  const std::string& overrun = done->overruns.front();
  CHECK(overrun.rfind("bytes behind '", 0) == 0);
  CHECK(overrun.find("' on the GPU are spoilt after node 'relu") != std::string::npos);
  CHECK(!done->completed);
}

TEST_CASE("without a GPU the cuda backend says what is missing, with one it opens") {
  const auto devices = cuda_devices();
  const auto backend = open_cuda_backend(default_cuda_setup(""));
  REQUIRE(backend.has_value() == devices.has_value());
  if (devices) {
    CHECK((*backend)->name() == "cuda: " + devices->front().name);
  } else {
    CHECK(backend.error().front().message == devices.error().front().message);
    CHECK(devices.error().front().message.find("CUDA driver") != std::string::npos);
  }
}

}  // namespace stowage::test
