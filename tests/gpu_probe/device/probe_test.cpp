#include "gpu_probe/device/probe.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/card/card.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "tests/support/source_directory.hpp"

using namespace stowage;

TEST_CASE("a machine without a driver says so") {
  const Probe found = probe({.nvml = "libno-such-nvml.so.1", .cuda = "libno-such-cuda.so.1"});
  CHECK(found.gpus.empty());
  CHECK(found.driver == "");
  CHECK(found.cuda == "");
  CHECK(found.no_gpu_reason ==
        "no NVIDIA driver is installed (libno-such-nvml.so.1 was not found)");
  CHECK(found.cudnn.empty() != found.no_cudnn_reason.empty());
}

TEST_CASE("a library that is no NVML is no driver") {
  const Probe found = probe({.nvml = "libm.so.6", .cuda = "libm.so.6"});
  CHECK(found.no_gpu_reason ==
        "the NVIDIA driver cannot be asked: libm.so.6 is not NVML, or too old");
}

TEST_CASE("what the driver tells is read") {
  const Probe found = probe({.nvml = STOWAGE_FAKE_DRIVER, .cuda = STOWAGE_FAKE_DRIVER});
  CHECK(found.no_gpu_reason == "");
  CHECK(found.driver == "580.95.05");
  CHECK(found.cuda == "13.0");
  REQUIRE(found.gpus.size() == 3);
  const ProbedGpu& gpu = found.gpus[0];
  CHECK(gpu.name == "NVIDIA GeForce RTX 3090");
  CHECK(gpu.uuid == "GPU-0001");
  CHECK(gpu.pci_bus_id == "00000000:65:00.0");
  CHECK(gpu.compute_capability == doctest::Approx(8.6));
  CHECK(gpu.total == 24576_MiB);
  CHECK(gpu.free == 24000_MiB);
  CHECK(gpu.used == 576_MiB);
  CHECK(gpu.cuda_total == 25'425'608'704_B);
  CHECK(gpu.ordinal == 1);
  CHECK(gpu.link == PcieLink{1, 16});
  CHECK(gpu.link_at_most == PcieLink{4, 16});
}

TEST_CASE("what the driver does not tell stays open") {
  const Probe found = probe({.nvml = STOWAGE_FAKE_DRIVER, .cuda = "libno-such-cuda.so.1"});
  REQUIRE(found.gpus.size() == 3);
  const ProbedGpu& gpu = found.gpus[1];
  CHECK(gpu.name == "NVIDIA T4");
  CHECK(gpu.uuid == "");
  CHECK(gpu.total == 0_B);
  CHECK_FALSE(gpu.cuda_total);
  CHECK_FALSE(gpu.ordinal);
  CHECK_FALSE(gpu.link);
  CHECK(gpu.processes.empty());
  CHECK_FALSE(found.asked_cuda);
}

TEST_CASE("the programs that use a GPU are listed, each once") {
  const Probe found = probe({.nvml = STOWAGE_FAKE_DRIVER, .cuda = STOWAGE_FAKE_DRIVER});
  REQUIRE(found.gpus.size() == 3);
  const std::vector<GpuProcess>& processes = found.gpus[0].processes;
  REQUIRE(processes.size() == 3);
  CHECK(processes[0].pid == 1);
  CHECK_FALSE(processes[0].memory);
  CHECK(processes[1] == GpuProcess{1 << 30, "", 1_MiB});
  CHECK(processes[2] == GpuProcess{std::int64_t{1} << 31, "", 512_MiB});
}

TEST_CASE("a divided GPU lists its instances, and one that CUDA does not show has no number") {
  const Probe found = probe({.nvml = STOWAGE_FAKE_DRIVER, .cuda = STOWAGE_FAKE_DRIVER});
  REQUIRE(found.gpus.size() == 3);
  CHECK(found.asked_cuda);
  CHECK_FALSE(found.gpus[0].is_divided);
  CHECK_FALSE(found.gpus[1].is_divided);
  const ProbedGpu& gpu = found.gpus[2];
  CHECK(gpu.is_divided);
  CHECK_FALSE(gpu.ordinal);
  REQUIRE(gpu.instances.size() == 2);
  CHECK(gpu.instances[0] ==
        MigInstance{"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-0004", 4864_MiB, 4800_MiB});
  CHECK(gpu.instances[1].total == 20096_MiB);
}

TEST_CASE("a probed name is a card's name") {
  const Probe found = probe({.nvml = STOWAGE_FAKE_DRIVER, .cuda = STOWAGE_FAKE_DRIVER});
  REQUIRE(found.gpus.size() == 3);
  for (const ProbedGpu& gpu : found.gpus) {
    const auto card = find_card(gpu.name, testing::source_path("/configs/gpus"));
    REQUIRE(card);
    CHECK(card->note == "");
    CHECK(card->card.compute_capability == doctest::Approx(gpu.compute_capability));
  }
}

TEST_CASE("/proc is understood") {
  const std::string text = "MemTotal:       24684092 kB\nMemFree:  5 kB\nMemAvailable: 10 kB\n";
  CHECK(meminfo(text, "MemTotal") == 24684092_KiB);
  CHECK(meminfo(text, "MemAvailable") == 10_KiB);
  CHECK(meminfo(text, "Mem") == 0_B);
  CHECK(meminfo("", "MemTotal") == 0_B);
  const std::string cpuinfo = "processor\t: 0\nmodel name\t: A Fine CPU\nflags\t\t: fpu avx2 fma\n";
  CHECK(cpu_name(cpuinfo) == "A Fine CPU");
  CHECK(cpu_name("nothing") == "");
  CHECK(has_cpu_flag(cpuinfo, "avx2"));
  CHECK_FALSE(has_cpu_flag(cpuinfo, "avx"));
}

TEST_CASE("this host has memory and cores") {
  const ProbedHost host = probe_host();
  CHECK(host.cores >= 1);
  CHECK(host.memory > 64_MiB);
  CHECK(host.available <= host.memory);
}

TEST_CASE("the planner's host is the probed one at nominal rates") {
  const ProbedHost probed{.cpu = "A Fine CPU", .cores = 4, .memory = 32_GiB};
  const Host host = host_from(probed, "flags\t: fpu avx2\n");
  CHECK(host.name == "A Fine CPU");
  CHECK(host.memory == 32_GiB);
  CHECK(host.pinned_limit == 16_GiB);
  CHECK(host.cpu_flops == doctest::Approx(120e9));
  CHECK(host.memory_bandwidth == doctest::Approx(40e9));
  CHECK(host.kernel_latency == doctest::Approx(2e-6));
  CHECK(host.link_latency == doctest::Approx(10e-6));
  CHECK(host.h2d_bandwidth == 0);
  CHECK(host.source == "this machine");
  CHECK(host_from(probed, "flags : avx2 avx512f").cpu_flops == doctest::Approx(240e9));
  CHECK(host_from({.cores = 64, .memory = 1_GiB}, "").memory_bandwidth == doctest::Approx(100e9));
  CHECK(this_host().memory == probe_host().memory);
}
