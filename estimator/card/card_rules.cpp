#include "estimator/card/card_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace stowage {

namespace {

/// CUDA's programming guide (limits of a multiprocessor), the makers' specifications (lanes, tensor
/// cores) and a usual card of the generation.
struct Generation {
  double compute_capability;
  std::string_view architecture;
  int threads;           // resident on a multiprocessor
  int lanes;             // fp32 units of a multiprocessor
  double tf32, fp16;     // dense tensor rates as multiples of fp32; 0: no tensor cores
  Bytes context_base;    // docs/gpus.md, "context"
  Bytes driver_reserve;  // nvml_total - cuda_total
  int pcie_generation;   // 0: memory shared with the CPU
  int sm_count;          // from here on: of a usual card
  double clock;          // Hz
  double bandwidth;      // bytes a second
};
constexpr std::array<Generation, 20> generations = {{
    {3.0, "Kepler", 2048, 192, 0, 0, 133_MiB, 3_MiB, 3, 8, 0.95e9, 192e9},
    {3.5, "Kepler", 2048, 192, 0, 0, 133_MiB, 3_MiB, 3, 14, 0.88e9, 288e9},
    {3.7, "Kepler", 2048, 192, 0, 0, 133_MiB, 3_MiB, 3, 13, 0.82e9, 240e9},
    {5.0, "Maxwell", 2048, 128, 0, 0, 133_MiB, 3_MiB, 3, 5, 1.08e9, 86e9},
    {5.2, "Maxwell", 2048, 128, 0, 0, 133_MiB, 3_MiB, 3, 13, 1.18e9, 224e9},
    {5.3, "Maxwell", 2048, 128, 0, 0, 133_MiB, 0_MiB, 0, 1, 0.92e9, 25.6e9},
    {6.0, "Pascal", 2048, 64, 0, 0, 133_MiB, 3_MiB, 3, 56, 1.3e9, 732e9},
    {6.1, "Pascal", 2048, 128, 0, 0, 133_MiB, 3_MiB, 3, 15, 1.68e9, 256e9},
    {6.2, "Pascal", 2048, 128, 0, 0, 133_MiB, 0_MiB, 0, 2, 1.3e9, 58e9},
    {7.0, "Volta", 2048, 64, 0, 8, 174_MiB, 258_MiB, 3, 80, 1.4e9, 900e9},
    {7.2, "Volta", 2048, 64, 0, 8, 133_MiB, 0_MiB, 0, 8, 1.3e9, 137e9},
    {7.5, "Turing", 1024, 64, 0, 4, 133_MiB, 258_MiB, 3, 36, 1.65e9, 448e9},
    {8.0, "Ampere", 2048, 64, 8, 16, 265_MiB, 583_MiB, 4, 108, 1.41e9, 1555e9},
    {8.6, "Ampere", 1536, 128, 1, 2, 133_MiB, 350_MiB, 4, 46, 1.7e9, 448e9},
    {8.7, "Ampere", 1536, 128, 2, 4, 133_MiB, 0_MiB, 0, 14, 0.93e9, 204.8e9},
    {8.9, "Ada", 1536, 128, 1, 2, 133_MiB, 408_MiB, 4, 46, 2.5e9, 504e9},
    {9.0, "Hopper", 2048, 128, 7.4, 14.8, 265_MiB, 480_MiB, 5, 132, 1.75e9, 3350e9},
    {10.0, "Blackwell", 2048, 128, 14, 28, 265_MiB, 724_MiB, 5, 148, 1.85e9, 8000e9},
    {11.0, "Blackwell", 1536, 128, 2, 4, 133_MiB, 0_MiB, 0, 20, 1.5e9, 273e9},
    {12.0, "Blackwell", 1536, 128, 1, 2, 133_MiB, 463_MiB, 5, 48, 2.5e9, 672e9},
}};
// GB10's compute capability is 12.1; its processor is that of 12.0, its memory the CPU's.
constexpr double unified_blackwell = 12.1;

// Before R510 drivers did not count their own part in nvml_total: on cards of that time it was 66
// to 86 MiB below the advertised size (5 cards; docs/gpus.md).
constexpr Bytes reserve_before_turing = 76_MiB;

/// The latest generation up to the compute capability; the first if all are later.
const Generation& generation_of(const Card& card) {
  const auto later = std::ranges::find_if(generations, [&](const Generation& generation) {
    return generation.compute_capability > card.compute_capability;
  });
  return later == generations.begin() ? *later : *std::prev(later);
}

/// "gen4 x16", as rates of copies from and to pinned memory (docs/gpus.md, "Link rates").
struct Link {
  double h2d = 0, d2h = 0, pageable = 0;
};
std::optional<Link> link_of(std::string_view pcie) {
  constexpr std::array<Link, 5> by_generation = {{{3e9, 3e9, 2e9},
                                                  {6e9, 6.2e9, 4e9},
                                                  {12.1e9, 12.9e9, 6e9},
                                                  {25e9, 26e9, 8e9},
                                                  {53e9, 53e9, 10e9}}};
  if (pcie.size() < 7 || !pcie.starts_with("gen") || pcie.substr(4, 2) != " x") return {};
  const int generation = pcie[3] - '0';
  int lanes = 0;
  const auto [end, error] = std::from_chars(pcie.data() + 6, pcie.data() + pcie.size(), lanes);
  if (error != std::errc() || end != pcie.data() + pcie.size()) return {};
  if (generation < 1 || generation > 5 || lanes < 1 || lanes > 16) return {};
  Link link = by_generation[static_cast<std::size_t>(generation - 1)];
  link.h2d *= lanes / 16.0;
  link.d2h *= lanes / 16.0;
  link.pageable = std::min(link.pageable, link.h2d * 0.55);
  return link;
}

/// Boards for workstations and data centres of the generations that GeForce has too: a larger
/// context, and tensor cores at full rate (docs/gpus.md).
bool is_professional_twin(const Card& card) {
  return card.professional && card.compute_capability > 8.5 && !has_unified_memory(card) &&
         generation_of(card).tf32 == 1;
}

Bytes context_base(const Card& card) {
  return is_professional_twin(card) ? 213_MiB : generation_of(card).context_base;
}

/// Fills in missing figures, and notes their keys.
class Completion {
 public:
  Completion(Card& card, const GivenKeys& given) : card_(card), given_(given) {}

  [[nodiscard]] bool lacks(std::string_view key) const { return !given_.contains(key); }

  template <typename Value>
  void fill(std::string_view key, Value Card::*field, Value value) {
    if (!lacks(key)) return;
    card_.*field = std::move(value);
    card_.by_rule.emplace_back(key);
  }

  // Texts are filled in without a note.
  void say(std::string_view key, std::string Card::*field, std::string text) {
    if (lacks(key)) card_.*field = std::move(text);
  }

 private:
  Card& card_;
  const GivenKeys& given_;
};

void complete_totals(Card& card, Completion& completion, const Generation& generation) {
  if (!completion.lacks("cuda_total")) {
    completion.say("total_source", &Card::total_source, "given as cuda_total");
    if (completion.lacks("nvml_total")) card.nvml_total = card.cuda_total;
    return;
  }
  Bytes reserve = has_unified_memory(card) ? Bytes() : generation.driver_reserve;
  if (completion.lacks("nvml_total")) {
    card.nvml_total = card.memory;
    if (card.compute_capability < 7 && reserve > Bytes()) reserve = reserve_before_turing;
  }
  completion.fill("cuda_total", &Card::cuda_total, std::max(card.nvml_total - reserve, Bytes()));
  completion.say(
      "total_source", &Card::total_source,
      fmt::format("by rule: {} less {} that the driver keeps",
                  completion.lacks("nvml_total") ? "memory" : "nvml_total", format_bytes(reserve)));
}

void complete_link(Card& card, Completion& completion, const Generation& generation) {
  const bool unified = has_unified_memory(card);
  completion.fill("pcie", &Card::pcie,
                  unified ? std::string("unified memory")
                          : fmt::format("gen{} x16", generation.pcie_generation));
  const double half = card.memory_bandwidth / 2;  // a copy reads and writes the same memory
  const Link link =
      unified ? Link{half, half, half} : link_of(card.pcie).value_or(*link_of("gen3 x16"));
  completion.fill("h2d_bandwidth", &Card::h2d_bandwidth, link.h2d);
  completion.fill("d2h_bandwidth", &Card::d2h_bandwidth, link.d2h);
  completion.fill("pageable_bandwidth", &Card::pageable_bandwidth, link.pageable);
}

void complete_rates(Card& card, Completion& completion, const Generation& generation) {
  completion.fill("memory_bandwidth", &Card::memory_bandwidth, generation.bandwidth);
  completion.fill("fp32", &Card::fp32_flops,
                  card.sm_count * generation.lanes * 2 * generation.clock);
  const double full_rate = is_professional_twin(card) ? 2 : 1;
  completion.fill("tf32", &Card::tf32_flops, card.fp32_flops * generation.tf32 * full_rate);
  completion.fill("fp16", &Card::fp16_flops,
                  card.fp32_flops * (generation.fp16 > 0 ? generation.fp16 * full_rate : 1));
}

// The properties of a multiprocessor that cuDNN's device description has (CUDA programming guide,
// compute capabilities).
struct Multiprocessor {
  double compute_capability;
  int shared_optin, reserved_shared, blocks, threads;
  int l2_mebibytes;  // of a usual card
  int memory_clock;  // kHz, likewise
};
constexpr std::array<Multiprocessor, 9> multiprocessors = {{
    {7.5, 65536, 0, 16, 1024, 4, 7001000},
    {8.0, 166912, 1024, 32, 2048, 40, 1215000},
    {8.6, 101376, 1024, 16, 1536, 6, 9751000},
    {8.7, 166912, 1024, 16, 1536, 4, 3199000},
    {8.9, 101376, 1024, 24, 1536, 32, 10501000},
    {9.0, 232448, 1024, 32, 2048, 50, 2619000},
    {10.0, 232448, 1024, 32, 2048, 126, 3996000},
    {11.0, 232448, 1024, 24, 1536, 32, 4266000},
    {12.0, 101376, 1024, 24, 1536, 48, 14001000},
}};

}  // namespace

int resident_threads(const Card& card) { return generation_of(card).threads; }

bool has_unified_memory(const Card& card) {
  return generation_of(card).pcie_generation == 0 || card.compute_capability == unified_blackwell;
}

std::string cudnn_device_by_rule(const Card& card) {
  const auto later = std::ranges::find_if(multiprocessors, [&](const Multiprocessor& unit) {
    return unit.compute_capability > card.compute_capability;
  });
  if (later == multiprocessors.begin()) return "";
  const Multiprocessor& unit = *std::prev(later);
  return fmt::format(
      R"({{"cudaDeviceId": 0, "deviceName": "{}", "deviceVer": {}, "driverVer": 13000, )"
      R"("isTccDriver": 0, "l2CacheSize": {}, "maxBlockSize": [1024, 1024, 64], )"
      R"("maxCtasPerSM": {}, "maxGridSize": [2147483647, 65535, 65535], )"
      R"("maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, )"
      R"("maxSharedMemoryPerBlockOptin": {}, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": {}, )"
      R"("memClockRateKHz": {}, "multiProcessorCount": {}, "pciDeviceId": 0, )"
      R"("regsPerBlock": 65536, "reservedSharedMemoryPerBlock": {}, "smClockRateKHz": {}, )"
      R"("supportCoopLaunch": 1, "totalGlobalMem": {}, "warpSize": 32}})",
      "by rule", std::lround(card.compute_capability * 100), unit.l2_mebibytes << 20, unit.blocks,
      unit.shared_optin, unit.threads, unit.memory_clock, card.sm_count, unit.reserved_shared,
      std::llround(generation_of(card).clock / 1e3), card.cuda_total.count());
}

Card completed_by_rule(Card card, const GivenKeys& given) {
  const Generation& generation = generation_of(card);
  Completion completion(card, given);
  completion.say("architecture", &Card::architecture, std::string(generation.architecture));
  complete_totals(card, completion, generation);
  completion.fill("sm_count", &Card::sm_count, generation.sm_count);
  complete_rates(card, completion, generation);
  complete_link(card, completion, generation);
  const std::int64_t threads = std::int64_t{card.sm_count} * generation.threads;
  completion.fill("context", &Card::context, context_base(card) + 1_KiB * threads);
  completion.say("context_source", &Card::context_source,
                 fmt::format("rule: {} and 1 KiB for each of {} resident threads; docs/gpus.md",
                             format_bytes(context_base(card)), threads));
  completion.say("rate_source", &Card::rate_source, "by rule: docs/gpus.md");
  completion.say("confidence", &Card::confidence, "low: by rule");
  if (completion.lacks("cudnn_device")) card.cudnn_device_json = cudnn_device_by_rule(card);
  return card;
}

}  // namespace stowage
