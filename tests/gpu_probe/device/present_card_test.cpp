#include "gpu_probe/device/present_card.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/source_directory.hpp"

using namespace stowage;

namespace {

const std::string catalogue = testing::source_path("/configs/gpus");

Probe machine_with(ProbedGpu gpu) {
  Probe probe;
  probe.gpus.push_back(std::move(gpu));
  probe.asked_cuda = true;
  return probe;
}

ProbedGpu rtx3090() {
  ProbedGpu gpu{.name = "NVIDIA GeForce RTX 3090", .compute_capability = 8.6};
  gpu.total = 24576_MiB;
  gpu.free = 20000_MiB;
  gpu.ordinal = 0;
  gpu.cuda_total = 24250_MiB;
  return gpu;
}

std::string refusal_of(const Probe& probe) {
  const auto present = present_card(probe, catalogue);
  return present ? "" : present.error().front().message;
}

}  // namespace

TEST_CASE("the present card is the catalogue's with the driver's totals") {
  const auto present = present_card(machine_with(rtx3090()), catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.name == "GeForce RTX 3090");
  CHECK(present->card.sm_count == 82);
  CHECK(present->card.nvml_total == 24576_MiB);
  CHECK(present->card.cuda_total == 24250_MiB);
  CHECK(present->card.total_source == "this machine's driver");
  CHECK(present->in_use == 4250_MiB);
  CHECK(present->note == "");
}

TEST_CASE("the first that CUDA shows is taken, whatever the driver's order") {
  Probe probe = machine_with(rtx3090());
  probe.gpus[0].ordinal = 1;
  ProbedGpu other{.name = "NVIDIA A100-SXM4-40GB", .compute_capability = 8.0};
  other.ordinal = 0;
  other.total = 40960_MiB;
  other.free = 40500_MiB;
  other.cuda_total = 40000_MiB;
  probe.gpus.push_back(other);
  const auto present = present_card(probe, catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.compute_capability == doctest::Approx(8.0));
  CHECK(present->in_use ==
        0_B);  // more is free than CUDA's total, which lacks what the driver keeps
}

TEST_CASE("a card that the catalogue lacks is by rule") {
  ProbedGpu gpu = rtx3090();
  gpu.name = "NVIDIA Experimental 1234";
  const auto present = present_card(machine_with(gpu), catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.name == "NVIDIA Experimental 1234");
  CHECK(present->card.cuda_total == 24250_MiB);
  CHECK(present->card.memory_bandwidth > 0);
  CHECK(!present->card.by_rule.empty());
  CHECK(!present->card.cudnn_device_json.empty());
}

TEST_CASE("of a divided GPU the instance that CUDA shows is free or in use") {
  ProbedGpu gpu{.name = "NVIDIA A100-SXM4-40GB", .compute_capability = 8.0};
  gpu.total = 40960_MiB;
  gpu.free = 10000_MiB;
  gpu.ordinal = 0;
  gpu.is_divided = true;
  gpu.cuda_total = 20000_MiB;
  gpu.instances = {{"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-1", 4864_MiB, 100_MiB},
                   {"NVIDIA A100-SXM4-40GB MIG 3g.20gb", "MIG-2", 20096_MiB, 15000_MiB}};
  const auto present = present_card(machine_with(gpu), catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.cuda_total == 20000_MiB);
  CHECK(present->in_use == 5000_MiB);
}

TEST_CASE("an instance that CUDA names is the slice, with the driver's total") {
  ProbedGpu gpu{.name = "NVIDIA A100-SXM4-40GB MIG 3g.20gb", .compute_capability = 8.0};
  gpu.total = 40960_MiB;
  gpu.ordinal = 0;
  gpu.is_divided = true;
  gpu.cuda_total = 20096_MiB;
  const auto present = present_card(machine_with(gpu), catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.name == "A100-SXM4-40GB MIG 3g.20gb");
  CHECK(present->card.sm_count == 42);
  CHECK(present->card.cuda_total == 20096_MiB);
  gpu.name = "NVIDIA A100-SXM4-40GB MIG 9g.99gb";
  CHECK(present_card(machine_with(gpu), catalogue)->card.name == "A100-SXM4-40GB");
}

TEST_CASE("of cards with the driver's name the one with the driver's total is present") {
  ProbedGpu gpu{.name = "NVIDIA GeForce GTX 1060", .compute_capability = 6.1};
  gpu.total = 6078_MiB;
  gpu.ordinal = 0;
  const auto present = present_card(machine_with(gpu), catalogue);
  REQUIRE(present.has_value());
  CHECK(present->card.name == "GeForce GTX 1060 6GB");
  CHECK(present->note ==
        "'NVIDIA GeForce GTX 1060' is taken for gtx-1060-6gb, whose memory is nearest");
}

TEST_CASE("why there is no present card") {
  Probe nothing;
  nothing.no_gpu_reason = "no NVIDIA driver is installed (libnvidia-ml.so.1 was not found)";
  CHECK(refusal_of(nothing) == nothing.no_gpu_reason);
  Probe hidden = machine_with(rtx3090());
  hidden.gpus[0].ordinal.reset();
  CHECK(refusal_of(hidden) == "CUDA shows none of the driver's GPUs");
  hidden.visible_devices = "-1";
  CHECK(refusal_of(hidden) == "CUDA_VISIBLE_DEVICES=-1 hides every GPU");
  hidden.asked_cuda = false;
  CHECK(refusal_of(hidden) == "the driver lists a GPU, but libcuda.so.1 cannot be asked about it");
}
