#include "estimator/card/card.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/card/card_file.hpp"
#include "estimator/card/card_name.hpp"
#include "tests/support/source_directory.hpp"

using namespace stowage;

namespace {

const std::string directory = testing::source_path("/configs/gpus");

std::string found(const std::string& name) {
  const auto card = find_card(name, directory);
  return card ? card->card.name + (card->note.empty() ? "" : " | " + card->note)
              : render(card.error());
}

std::string read_errors(const std::string& text) {
  const auto card =
      read_card(std::make_shared<SourceText>(SourceText{.name = "my.yaml", .text = text}));
  return card ? "" : render(card.error());
}

const std::string complete = R"(name: "My card"
architecture: Ampere
compute_capability: 8.6
sm_count: 10
nvml_total: 1024 MiB
cuda_total: 1000 MiB
total_source: typed
context: 100 MiB
context_source: typed
memory_bandwidth: 100 GB/s
fp32: 1.5 TFLOP/s
tf32: 1 TFLOP/s
fp16: 3 TFLOP/s
pcie: gen3 x16
h2d_bandwidth: 12 GB/s
d2h_bandwidth: 12 GB/s
pageable_bandwidth: 6 GB/s
rate_source: typed
confidence: low
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("one card has many spellings") {
  for (const char* name : {"rtx3090", "RTX 3090", "rtx-3090", "3090", "GeForce RTX 3090",
                           "NVIDIA GeForce RTX 3090", "rtx_3090"}) {
    CAPTURE(name);
    CHECK(found(name) == "GeForce RTX 3090");
  }
  CHECK(found("a100 80gb pcie") == "A100 80GB PCIe");
  CHECK(found("NVIDIA A100-SXM4-40GB") == "A100-SXM4-40GB");
  CHECK(found("h200") == "H200 SXM 141GB");
  CHECK(found("t4") == "Tesla T4");
  CHECK(found("4070 ti") == "GeForce RTX 4070 Ti");
  CHECK(found("NVIDIA H100 80GB HBM3") == "H100 SXM5 80GB");
  CHECK(found("NVIDIA RTX 6000 Ada Generation") == "RTX 6000 Ada");
  CHECK(found("rtx3060") == "GeForce RTX 3060 12GB");
  CHECK(found("l4") == "L4");
  CHECK(found("NVIDIA GeForce RTX 4060 Laptop GPU") == "GeForce RTX 4060 Laptop");
  CHECK(found("gtx 1060 mobile") == "GeForce GTX 1060 Laptop");
  CHECK(found("GRID K520") == "GRID K520 (one GPU)");
  CHECK(found("Tesla K40m") == "Tesla K40");
  CHECK(found("rtx 2070 super") == "GeForce RTX 2070 SUPER");
  CHECK(found("quadro p4000") == "Quadro P4000");
  CHECK(found("gb10") == "GB10 (DGX Spark)");
}

TEST_CASE("of cards with the same memory the first is taken, which is said") {
  CHECK(found("a100-80gb") ==
        "A100 80GB PCIe | 'a100-80gb' may be a100-pcie-80gb, a100-sxm4-80gb, which have the same "
        "memory: took a100-pcie-80gb");
  CHECK(found("v100-16gb") ==
        "Tesla V100-PCIE-16GB | 'v100-16gb' may be v100-pcie-16gb, v100-sxm2-16gb, which have the "
        "same memory: took v100-pcie-16gb");
  CHECK(found("titan x").ends_with("which have the same memory: took gtx-titan-x-maxwell"));
}

TEST_CASE("a name of cards with different memory is refused with theirs") {
  CHECK(found("gtx1060") ==
        "error: 'gtx1060' is the name of cards with different memory: gtx-1060-3gb (2.9 GiB), "
        "gtx-1060-6gb (5.9 GiB)\n  did you mean 'gtx-1060-3gb' or 'gtx-1060-6gb'?\n");
  CHECK(found("v100") ==
        "error: 'v100' is the name of cards with different memory: v100-pcie-16gb (15.7 GiB), "
        "v100-sxm2-16gb (15.8 GiB), v100-sxm2-32gb (31.7 GiB)\n"
        "  did you mean 'v100-pcie-16gb', 'v100-sxm2-16gb' or 'v100-sxm2-32gb'?\n");
  for (const char* name : {"titan", "rtx3080", "a100", "h100", "jetson orin nano"}) {
    CAPTURE(name);
    CHECK(found(name).find("is the name of cards with different memory") != std::string::npos);
  }
}

TEST_CASE("of cards with one name the given total decides") {
  const auto card = find_card("gtx1060", directory, 6_GiB);
  REQUIRE(card);
  CHECK(card->card.name == "GeForce GTX 1060 6GB");
  CHECK(card->note == "'gtx1060' is taken for gtx-1060-6gb, whose memory is nearest");
  CHECK(find_card("rtx3090", directory, 6_GiB)->note.empty());
}

TEST_CASE("every short name is one card, cards of the same memory, or refused with its choices") {
  const auto cards = all_cards(directory);
  REQUIRE(cards);
  // "GeForce GTX 1060 3GB" without "3GB".
  for (const Card& card : *cards) {
    std::string name = card.name;
    const std::size_t size = name.rfind(' ');
    if (size == name.npos || !name.ends_with("GB")) continue;
    if (name.find_first_not_of("0123456789", size + 1) != name.size() - 2) continue;
    name.resize(size);
    CAPTURE(name);
    const auto meant = find_card(name, directory);
    if (meant) {
      CHECK(meant->card.cuda_total.count() ==
            doctest::Approx(card.cuda_total.count()).epsilon(0.051));
      continue;
    }
    CHECK(meant.error().front().hint.starts_with("did you mean '"));
  }
}

TEST_CASE("an unknown card gets a suggestion") {
  CHECK(found("rtx309") == "error: unknown GPU 'rtx309'\n  did you mean 'rtx-3090'?\n");
  CHECK(found("voodoo banshee") ==
        "error: unknown GPU 'voodoo banshee'\n  take a card of the catalogue, or describe it in "
        "a file\n");
  CHECK(found("") ==
        "error: unknown GPU ''\n  take a card of the catalogue, or describe it in a file\n");
  CHECK(found("no/such.yaml") == "error: cannot open 'no/such.yaml': No such file or directory\n");
}

TEST_CASE("a short name that differs in a letter is no slip") {
  for (const char* name : {"m9", "a3", "l5", "h99", "k30"}) {
    CAPTURE(name);
    CHECK(found(name) == "error: unknown GPU '" + std::string(name) +
                             "'\n  take a card of the catalogue, or describe it in a file\n");
  }
}

TEST_CASE("processors that run no CUDA are refused with whose they are") {
  const auto refusal = [](const std::string& name, const std::string& maker,
                          const std::string& runtime, const std::string& size) {
    return "error: '" + name + "' is a processor of " + maker + "'s: it runs no CUDA, and what " +
           runtime + " takes beside the tensors is not modelled\n" +
           "  size the tensors alone, for a total of " + size + "\n";
  };
  const std::string unknown = "16GiB, with its own memory in place of 16GiB";
  struct Named {
    const char *name, *maker, *runtime;
    std::string size;
  };
  for (const Named& one : {Named{"mi300x", "AMD", "ROCm", "192GiB"},
                           {"AMD Instinct MI250X", "AMD", "ROCm", "128GiB"},
                           {"Radeon RX 7900 XTX", "AMD", "ROCm", "24GiB"},
                           {"7900 XTX", "AMD", "ROCm", "24GiB"},
                           {"rx 9070 xt", "AMD", "ROCm", "16GiB"},
                           {"Arc A770", "Intel", "oneAPI", "16GiB"},
                           {"Intel Arc B580", "Intel", "oneAPI", "12GiB"},
                           {"gaudi 3", "Intel", "Gaudi's software", "128GiB"},
                           {"Intel Data Center GPU Max 1550", "Intel", "oneAPI", "128GiB"},
                           {"m2", "Apple", "Metal", unknown},
                           {"M3 Max", "Apple", "Metal", unknown},
                           {"Apple M4", "Apple", "Metal", unknown},
                           {"TPU v5e", "Google", "XLA", "16GiB"},
                           {"tpu-v4", "Google", "XLA", unknown},
                           {"AWS Trainium2", "Amazon", "Neuron", "96GiB"},
                           {"inf2", "Amazon", "Neuron", unknown},
                           {"Huawei Ascend 910B", "Huawei", "CANN", "64GiB"}}) {
    CAPTURE(one.name);
    CHECK(found(one.name) == refusal(one.name, one.maker, one.runtime, one.size));
  }
  CHECK(found("m4") == "Tesla M4 | 'm4' is taken for NVIDIA's Tesla M4; Apple's runs no CUDA");
}

TEST_CASE("a Max-Q board is the laptop's card, else the card itself, which is said") {
  const std::string note = ": a Max-Q board has the same memory, and its rates are lower";
  CHECK(found("GTX 1650 Max-Q") ==
        "GeForce GTX 1650 Laptop | 'GTX 1650 Max-Q' is taken for GeForce GTX 1650 Laptop" + note);
  CHECK(found("NVIDIA GeForce RTX 2070 with Max-Q Design") ==
        "GeForce RTX 2070 Laptop | 'NVIDIA GeForce RTX 2070 with Max-Q Design' is taken for "
        "GeForce RTX 2070 Laptop" +
            note);
  CHECK(found("RTX PRO 6000 Blackwell Max-Q Workstation Edition")
            .starts_with("RTX PRO 6000 Blackwell | "));
}

TEST_CASE("aliases name cards that their files' names do not") {
  CHECK(found("DGX Spark") == "GB10 (DGX Spark)");
  CHECK(found("NVIDIA GB10") == "GB10 (DGX Spark)");
  CHECK(found("NVIDIA GH200 480GB") == "GH200 96GB");
}

TEST_CASE("a path is a card file") {
  CHECK(found(directory + "/rtx-3090.yaml") == "GeForce RTX 3090");
}

TEST_CASE("every shipped card reads, is found by its own name and makes sense") {
  const auto cards = all_cards(directory);
  REQUIRE(cards);
  CHECK(cards->size() == 247);
  std::string previous;
  for (const Card& card : *cards) {
    CAPTURE(card.name);
    CHECK(previous < card.name);
    previous = card.name;
    CHECK(found(card.name).substr(0, card.name.size()) == card.name);
    CHECK(card.context > Bytes(0));
    CHECK(card.context < card.cuda_total);
    CHECK(card.cuda_total <= card.nvml_total + 4_MiB);
    CHECK(card.fp16_flops >= card.fp32_flops);
    CHECK(card.pageable_bandwidth <= card.h2d_bandwidth);
    CHECK(remarks_on(card).size() <= 1);
    CHECK(std::ranges::find(card.by_rule, "sm_count") == card.by_rule.end());
    CHECK(std::ranges::find(card.by_rule, "fp32") == card.by_rule.end());
    CHECK(card.cudnn_device_json.empty() == (card.compute_capability < 7.5));
    if (!card.cudnn_device_json.empty()) {
      CHECK(card.cudnn_device_json.find("\"multiProcessorCount\": " +
                                        std::to_string(card.sm_count) + ",") != std::string::npos);
    }
  }
}

TEST_CASE("figures of a card that is often asked for") {
  const auto card = find_card("rtx3090", directory);
  REQUIRE(card);
  CHECK(card->card.nvml_total == 24576_MiB);
  CHECK(card->card.cuda_total == 24248_MiB);
  CHECK(card->card.memory_bandwidth == doctest::Approx(936e9));
  CHECK(card->card.fp32_flops == doctest::Approx(35.6e12));
  CHECK(card->card.context == 256_MiB);
  CHECK(card->card.pcie == "gen4 x16");
}

TEST_CASE("a card file's mistakes are all reported with their places") {
  CHECK(read_errors(complete) == "");
  CHECK(
      read_errors(replaced(complete, "memory_bandwidth: 100 GB/s", "memory_bandwith: 100 GB/s")) ==
      "my.yaml:10:1: error: unknown key 'memory_bandwith' in a card file\n"
      "  memory_bandwith: 100 GB/s\n"
      "  ^~~~~~~~~~~~~~~\n"
      "  did you mean 'memory_bandwidth'?\n");
  CHECK(read_errors(replaced(complete, "1.5 TFLOP/s", "1.5 GB/s")) ==
        "my.yaml:11:7: error: 'fp32' is not a rate in TFLOP/s: '1.5 GB/s'\n"
        "  fp32: 1.5 GB/s\n"
        "        ^~~~~~~~\n");
  CHECK(read_errors(replaced(complete, "cuda_total: 1000 MiB", "cuda_total: many")) ==
        "my.yaml:6:13: error: 'cuda_total' is not a size such as 24576 MiB: 'many'\n"
        "  cuda_total: many\n"
        "              ^~~~\n");
  CHECK(read_errors(replaced(complete, "8.6", "sm_86")) ==
        "my.yaml:3:21: error: 'compute_capability' is not a number such as 8.6: 'sm_86'\n"
        "  compute_capability: sm_86\n"
        "                      ^~~~~\n");
  CHECK(read_errors(replaced(complete, "sm_count: 10", "sm_count: -1")) ==
        "my.yaml:4:11: error: 'sm_count' is not a count: '-1'\n"
        "  sm_count: -1\n"
        "            ^~\n");
  CHECK(read_errors(complete + "pcie: gen4 x16\n") ==
        "my.yaml:20:1: error: 'pcie' is given twice\n"
        "  pcie: gen4 x16\n"
        "  ^~~~\n"
        "my.yaml:14:1: note: first here\n"
        "  pcie: gen3 x16\n"
        "  ^~~~\n");
  CHECK(read_errors(replaced(complete, "12 GB/s", "0 GB/s")) ==
        "my.yaml: error: cuda_total, memory_bandwidth, fp32, h2d_bandwidth and d2h_bandwidth must "
        "be above 0\n");
  CHECK(read_errors("- a list\n") ==
        "my.yaml:1:1: error: a card file is a mapping of keys to values, not a list\n"
        "  - a list\n"
        "  ^\n"
        "  configs/gpus/ has examples\n");
  CHECK(read_errors("").starts_with("my.yaml"));
  CHECK(read_errors("name: [1, 2").starts_with("my.yaml:1:"));
  CHECK(read_errors(replaced(complete, "gen3 x16", "[gen3, x16]")) ==
        "my.yaml:14:7: error: 'pcie' takes one plain value, not a list\n"
        "  pcie: [gen3, x16]\n"
        "        ^\n");
  CHECK(read_errors("architecture: Ampere\n") ==
        "my.yaml: error: the card lacks 'name', 'compute_capability', 'memory'\n");
  CHECK(read_errors(complete + "observed_totals: [{nvml: 1 MiB, cud: 2, source: s}]\n") ==
        "my.yaml:20:33: error: unknown key 'cud' in an observed total\n"
        "  observed_totals: [{nvml: 1 MiB, cud: 2, source: s}]\n"
        "                                  ^~~\n"
        "  did you mean 'cuda'?\n");
  CHECK(read_errors(complete + "observed_totals: [{source: s}]\n") ==
        "my.yaml:20:19: error: an observed total has at least one of nvml and cuda\n"
        "  observed_totals: [{source: s}]\n"
        "                    ^\n");
}

TEST_CASE("a card file of three lines is enough; the rest is by rule") {
  const auto found = find_card(testing::source_path("/tests/gpus/lab.yaml"), directory);
  REQUIRE(found.has_value());
  const Card& card = found->card;
  CHECK(card.name == "lab card");
  CHECK(card.architecture == "Turing");
  CHECK(card.nvml_total == 8100_MiB);
  CHECK(card.cuda_total == 8100_MiB);
  CHECK(card.total_source == "given as cuda_total");
  CHECK(card.sm_count == 36);
  CHECK(card.context == 133_MiB + 36_MiB);
  CHECK(card.pcie == "gen3 x16");
  CHECK(card.h2d_bandwidth == 12.1e9);
  CHECK(card.fp16_flops == 4 * card.fp32_flops);
  CHECK(card.cudnn_device_json.find("\"totalGlobalMem\": 8493465600,") != std::string::npos);
  CHECK(remarks_on(card) ==
        std::vector<std::string>{
            "lab card: by rule and not measured (docs/gpus.md): sm_count, memory_bandwidth, fp32, "
            "tf32, fp16, pcie, h2d_bandwidth, d2h_bandwidth, pageable_bandwidth, context"});
}

TEST_CASE("the rules keep to what a card file gives") {
  const auto card_of = [](const std::string& text) {
    const auto card =
        read_card(std::make_shared<SourceText>(SourceText{.name = "my.yaml", .text = text}));
    REQUIRE(card.has_value());
    return *card;
  };
  const std::string head = "name: My card\ncompute_capability: ";
  const Card boxed = card_of(head + "8.6\nmemory: 8100 MiB\n");
  CHECK(boxed.nvml_total == 8100_MiB);
  CHECK(boxed.cuda_total == 7750_MiB);
  CHECK(boxed.total_source == "by rule: memory less 350.0 MiB that the driver keeps");
  CHECK(card_of(head + "6.1\nmemory: 8 GiB\n").cuda_total == 8116_MiB);
  CHECK(card_of(head + "6.1\nnvml_total: 8119 MiB\n").cuda_total == 8116_MiB);
  CHECK(card_of(head + "6.1\ncuda_total: 8000 MiB\n").cuda_total == 8000_MiB);
  const Card narrow = card_of(head + "8.9\nmemory: 8 GiB\npcie: gen4 x8\nsm_count: 20\n");
  CHECK(narrow.h2d_bandwidth == 12.5e9);
  CHECK(narrow.context == 133_MiB + 20 * 1536_KiB);
  const Card jetson = card_of(head + "7.2\ncuda_total: 7765 MiB\nmemory_bandwidth: 60 GB/s\n");
  CHECK(jetson.pcie == "unified memory");
  CHECK(jetson.h2d_bandwidth == 30e9);
  // Beyond the tables on both sides: the nearest generation.
  CHECK(card_of(head + "2.0\nmemory: 1 GiB\n").architecture == "Kepler");
  CHECK(card_of(head + "13.0\nmemory: 64 GiB\n").architecture == "Blackwell");
}

TEST_CASE("totals that were seen are kept, and a card on which they differ says which is taken") {
  const auto card = find_card("gtx-960-2gb", directory);
  REQUIRE(card.has_value());
  CHECK(card->card.observed_totals.size() == 6);
  CHECK(card->card.observed_totals.back().cuda == Bytes(2144010240));
  CHECK(remarks_on(card->card) ==
        std::vector<std::string>{
            "GeForce GTX 960 2GB: totals from 1993 to 2045 MiB were seen; 1997 MiB is taken "
            "(nvidia-smi listings in public logs; cuda_total derived: nvml_total - 3 MiB); "
            "give your own card's total"});
  CHECK(remarks_on(find_card("rtx3090", directory)->card).empty());
}

TEST_CASE("a generic card says that it is generic") {
  const Card card = generic_card(8_GiB);
  CHECK(card.name == "a generic " + format_bytes(8_GiB) + " card");
  CHECK(card.cuda_total == 8_GiB);
  CHECK(card.compute_capability == 8.6);
  CHECK(card.cudnn_device_json.find("\"deviceVer\": 860,") != std::string::npos);
  CHECK(card.cudnn_device_json.find("\"totalGlobalMem\": 8589934592,") != std::string::npos);
  CHECK(generic_card(2_GiB, 5.2).cudnn_device_json.empty());
}

TEST_CASE("a card file lists what was measured of processes") {
  const auto card = read_card(
      std::make_shared<SourceText>(SourceText{.name = "my.yaml", .text = complete + R"(measurements:
  - {runtime: pytorch, cuda: 12.1, loading: eager, context: 0.92 GiB, source: seen}
  - {runtime: tensorflow, cuda: 12.1, cublas: 40 MiB, cudnn: 90 MiB, source: seen too}
)"}));
  REQUIRE(card.has_value());
  REQUIRE(card->measurements.size() == 2);
  const ProcessMeasurement& first = card->measurements[0];
  CHECK(first.runtime == Runtime::pytorch);
  CHECK(first.stack == SoftwareStack{{12, 1}, ModuleLoading::eager});
  CHECK(first.context == Bytes(987842478));
  CHECK_FALSE(first.cublas.has_value());
  CHECK(first.source == "seen");
  CHECK_FALSE(first.calibrated);
  const ProcessMeasurement& second = card->measurements[1];
  CHECK(second.stack.loading == ModuleLoading::eager);
  CHECK(second.cublas == 40_MiB);
  CHECK(second.cudnn == 90_MiB);
}

TEST_CASE("mistakes in measurements have their places") {
  const auto errors = [](const std::string& text) { return read_errors(complete + text); };
  const auto says = [&](const std::string& text, const std::string& message) {
    CAPTURE(text);
    CHECK_MESSAGE(errors(text).find(message) != std::string::npos, errors(text));
  };
  says("measurements: 3\n", "my.yaml:20:15: error: 'measurements' is a list, not");
  says("measurements: [3]\n", "a measurement is a mapping of keys to values, not");
  says("measurements: [{runtime: pytorch, cuda: 12.1, source: s}]\n",
       "a measurement has at least one of context, cublas and cudnn");
  says("measurements: [{cuda: 12.1, context: 1 MiB, source: s}]\n",
       "a measurement lacks 'runtime'");
  says("measurements: [{runtime: pytorch, context: 1 MiB, source: s}]\n",
       "a measurement lacks 'cuda'");
  says("measurements: [{runtime: jax, cuda: 12.1, context: 1 MiB, source: s}]\n",
       "'runtime' is pytorch, tensorflow or stowage, not 'jax'");
  says("measurements: [{runtime: pytorch, cuda: twelve, context: 1 MiB, source: s}]\n",
       "'cuda' is a version such as 12.1, not 'twelve'");
  says("measurements: [{runtime: pytorch, cuda: 11.3, loading: lazy, context: 1 MiB, source: s}]\n",
       "CUDA 11.3 loads eagerly; lazy loading came with 11.7");
  says("measurements: [{runtime: pytorch, cuda: 12.1, loading: late, context: 1 MiB, source: s}]\n",
       "'loading' is lazy or eager, not 'late'");
  says("measurements: [{runtime: pytorch, cuda: 12.1, context: much, source: s}]\n",
       "'context' is not a size such as 470 MiB: 'much'");
  says("measurements: [{runtime: pytorch, cuda: 12.1, contxt: 1 MiB, source: s}]\n",
       "unknown key 'contxt' in a measurement");
}

TEST_CASE("a card file lists what kernels were seen to reach") {
  const auto card = read_card(std::make_shared<SourceText>(
      SourceText{.name = "my.yaml", .text = complete + R"(kernel_latency: 3.5 us
kernel_shares:
  - {kind: normalization, bandwidth: 0.64}
  - {kind: depthwise-convolution, arithmetic: 0.1, bandwidth: 0.5}
)"}));
  REQUIRE(card.has_value());
  CHECK(card->kernel_latency == doctest::Approx(3.5e-6));
  REQUIRE(card->kernel_shares.size() == 2);
  CHECK(card->kernel_shares[0].kind == KernelKind::normalization);
  CHECK_FALSE(card->kernel_shares[0].arithmetic);
  CHECK(card->kernel_shares[0].bandwidth == 0.64);
  CHECK(card->kernel_shares[1].arithmetic == 0.1);
}

TEST_CASE("mistakes in kernels' shares have their places") {
  const auto says = [](const std::string& text, const std::string& message) {
    const std::string errors = read_errors(complete + text);
    CHECK_MESSAGE(errors.find(message) != std::string::npos, errors);
  };
  says("kernel_latency: 3\n", "'kernel_latency' is not a time such as 4 us: '3'");
  says("kernel_shares: 3\n", "my.yaml:20:16: error: 'kernel_shares' is a list, not");
  says("kernel_shares: [{kind: product}]\n",
       "a kernel share has at least one of arithmetic and bandwidth");
  says("kernel_shares: [{bandwidth: 1}]\n", "a kernel share lacks 'kind'");
  says("kernel_shares: [{kind: gemm, bandwidth: 1}]\n", "my.yaml:20:24: error: 'kind' is not");
  says("kernel_shares: [{kind: product, bandwidth: 0}]\n",
       "'bandwidth' is not a share above 0, such as 0.8: '0'");
  says("kernel_shares: [{kind: product, bandwidth: 1}, {kind: product, arithmetic: 1}]\n",
       "'kernel_shares' has 'product' twice");
}

TEST_CASE("a calibration is a card file with what was measured, and goes before the card") {
  const auto calibrated = [](const std::string& text) {
    Card card = generic_card(Bytes(8) * (std::int64_t{1} << 30));
    card.name = "My card";
    card.measurements.push_back({.source = "published"});
    return read_calibration(
        std::make_shared<SourceText>(SourceText{.name = "cal.yaml", .text = text}), card);
  };
  const auto card = calibrated(R"(name: My card
h2d_bandwidth: 20 GB/s
measurements:
  - {runtime: pytorch, cuda: 13.0, context: 300 MiB, source: here}
)");
  REQUIRE(card.has_value());
  CHECK(card->h2d_bandwidth == 20e9);
  CHECK(card->cuda_total == Bytes(8) * (std::int64_t{1} << 30));
  REQUIRE(card->measurements.size() == 2);
  CHECK(card->measurements[0].source == "here");
  CHECK(card->measurements[0].calibrated);
  CHECK_FALSE(card->measurements[1].calibrated);
  const auto other = calibrated("name: Their card\n");
  REQUIRE_FALSE(other.has_value());
  CHECK(
      render(other.error())
          .find("cal.yaml:1:7: error: the calibration is of 'Their card', the card is 'My card'") !=
      std::string::npos);
  CHECK_FALSE(calibrated("context: 300 MiB\nbandwith: 3\n").has_value());
  CHECK_FALSE(calibrated("h2d_bandwidth: 0 GB/s\n").has_value());
  CHECK_FALSE(calibrated("[1]\n").has_value());
}
