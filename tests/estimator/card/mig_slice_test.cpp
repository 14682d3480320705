#include "estimator/card/mig_slice.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "estimator/base/read_source.hpp"
#include "tests/support/source_directory.hpp"

using namespace stowage;

namespace {

const std::string gpu_files = testing::source_path("/configs/gpus");

std::string slice_found(const std::string& name) {
  const auto card = find_card(name, gpu_files);
  return card ? card->card.name + (card->note.empty() ? "" : " | " + card->note)
              : render(card.error());
}

std::vector<MigTable> shipped_tables() {
  const auto source =
      read_source(testing::source_path("/configs/mig-profiles.yaml"), FileKind::card);
  REQUIRE(source.has_value());
  auto tables = read_mig_tables(*source);
  REQUIRE(tables.has_value());
  return *tables;
}

std::string mistakes_in(const std::string& text) {
  const auto tables =
      read_mig_tables(std::make_shared<SourceText>(SourceText{.name = "mig.yaml", .text = text}));
  return tables ? "" : render(tables.error());
}

}  // namespace

TEST_CASE("a slice has many spellings") {
  for (const char* name :
       {"a100-sxm4-40gb mig 3g.20gb", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100-sxm4-40gb:3g.20gb",
        "A100-SXM4-40GB/MIG-3g.20gb", "a100-sxm4-40gb 3g.20gb+me", "a100-sxm4-40gb_3g.20gb",
        "MIG 3g.20gb a100-sxm4-40gb", "a100 sxm4 40gb 3g20gb",
        "a100-sxm4-40gb MIG 3g.20gb Device"}) {
    CAPTURE(name);
    CHECK(slice_found(name) == "A100-SXM4-40GB MIG 3g.20gb");
  }
  CHECK(slice_found("nvidia.com/mig-1g.6gb.me a30") == "A30 MIG 1g.6gb");
  CHECK(slice_found("rtx pro 6000 blackwell 1g.24gb+me.all") ==
        "RTX PRO 6000 Blackwell MIG 1g.24gb");
  CHECK(slice_found("a30 1c.2g.12gb") == "A30 MIG 1c.2g.12gb");
  CHECK(!named_slice("rtx 3090").has_value());
  CHECK(!named_slice("a100-sxm4-40gb").has_value());
  CHECK(!named_slice("gtx 750").has_value());
}

TEST_CASE("of a card's variants those that have the profile count") {
  CHECK(slice_found("h100 mig 1g.10gb") ==
        "H100 PCIe 80GB MIG 1g.10gb | 'h100 mig 1g.10gb' may be h100-pcie-80gb, h100-sxm5-80gb, "
        "which have the same memory: took h100-pcie-80gb");
  CHECK(slice_found("h100 mig 1g.12gb") == "H100 NVL 94GB MIG 1g.12gb");
  CHECK(slice_found("a100:1g.5gb") ==
        "A100-PCIE-40GB MIG 1g.5gb | 'a100:1g.5gb' may be a100-pcie-40gb, a100-sxm4-40gb, which "
        "have the same memory: took a100-pcie-40gb");
}

TEST_CASE("a slice alone is refused with the cards that have it") {
  CHECK(slice_found("1g.5gb") ==
        "error: '1g.5gb' is a slice of several cards, and no card is named\n"
        "  did you mean 'a100-pcie-40gb mig 1g.5gb' or 'a100-sxm4-40gb mig 1g.5gb'?\n");
  CHECK(slice_found("MIG-1g.6gb+me") ==
        "error: 'MIG-1g.6gb+me' is a slice of several cards, and no card is named\n"
        "  did you mean 'a30 mig 1g.6gb'?\n");
}

TEST_CASE("a slice that the card lacks, or that no card has") {
  CHECK(slice_found("a30 mig 1g.5gb") ==
        "error: 'a30 mig 1g.5gb': a30 has no MIG profile 1g.5gb\n"
        "  did you mean 'a30 mig 1g.6gb', 'a30 mig 2g.12gb' or 'a30 mig 4g.24gb'?\n");
  CHECK(slice_found("rtx3090 mig 1g.5gb") ==
        "error: 'rtx3090 mig 1g.5gb': MIG does not divide rtx-3090\n"
        "  cards with that slice: 'a100-pcie-40gb mig 1g.5gb' or 'a100-sxm4-40gb mig 1g.5gb'\n");
  CHECK(slice_found("5g.5gb") ==
        "error: '5g.5gb': no card has the MIG profile 5g.5gb\n  did you mean '1g.5gb'?\n");
  CHECK(slice_found("mi300x mig 1g.5gb")
            .starts_with("error: 'mi300x mig 1g.5gb' is a processor of AMD"));
}

TEST_CASE("a slice's figures follow from its profile and its card's file") {
  const auto whole = find_card("a100-sxm4-40gb", gpu_files);
  const auto slice = find_card("a100-sxm4-40gb mig 1g.5gb", gpu_files);
  REQUIRE(whole);
  REQUIRE(slice);
  const Card& card = slice->card;
  CHECK(card.cuda_total == 4864_MiB);
  CHECK(card.nvml_total == 4864_MiB);
  CHECK(card.sm_count == 14);
  CHECK(card.memory_bandwidth == doctest::Approx(1555e9 / 8));
  CHECK(card.fp32_flops == doctest::Approx(19.5e12 * 14 / 108));
  CHECK(card.h2d_bandwidth == whole->card.h2d_bandwidth);
  // 265 MiB, and 1 KiB for each of 14 x 2,048 threads.
  CHECK(card.context == 265_MiB + 28_MiB);
  CHECK(card.observed_totals.empty());
  CHECK(card.cudnn_device_json.find("\"multiProcessorCount\": 14,") != std::string::npos);
  CHECK(card.cudnn_device_json.find("\"totalGlobalMem\": 5100273664,") != std::string::npos);
  CHECK(card.cudnn_device_json.find("\"l2CacheSize\": 5242880,") != std::string::npos);
}

TEST_CASE("a profile without a listing is by rule, which the card's remark says") {
  const auto slice = find_card("gh200 mig 3g.48gb", gpu_files);
  REQUIRE(slice);
  CHECK(slice->card.cuda_total == 44531_MiB);  // 91 percent of half of 97,871
  CHECK(
      remarks_on(slice->card) ==
      std::vector<std::string>{
          "GH200 96GB MIG 3g.48gb: by rule and not measured (docs/gpus.md): cuda_total, context"});
  const auto part = find_card("h20 mig 2g.24gb", gpu_files);
  REQUIRE(part);
  CHECK(part->card.sm_count == 22);  // two of seven slices of 78 multiprocessors
}

TEST_CASE("every shipped profile is a smaller card, on a card of the catalogue") {
  const std::vector<MigTable> tables = shipped_tables();
  CHECK(tables.size() == 14);
  std::set<std::string> divided;
  for (const MigTable& table : tables) {
    for (const std::string& stem : table.cards) {
      CAPTURE(stem);
      CHECK(divided.insert(stem).second);
      const auto whole = find_card(stem, gpu_files);
      REQUIRE(whole);
      CHECK(whole->card.compute_capability >= 8);
      for (const MigProfile& profile : table.profiles) {
        CAPTURE(profile.name);
        const auto slice = find_card(stem + " mig " + profile.name, gpu_files);
        REQUIRE(slice);
        const Card& card = slice->card;
        CHECK(card.name == whole->card.name + " MIG " + profile.name);
        CHECK(card.cuda_total <= whole->card.cuda_total);
        CHECK(card.sm_count <= whole->card.sm_count);
        CHECK(card.context < card.cuda_total);
        // "20gb" is the memory's size in gigabytes, more or less.
        const double named = std::stod(profile.name.substr(profile.name.find('.') + 1));
        CHECK(card.cuda_total.count() / 0x1p30 == doctest::Approx(named).epsilon(0.16));
        // And its share of what the whole has, more or less.
        CHECK(card.cuda_total.count() >=
              0.9 * profile.memory_share * whole->card.cuda_total.count());
      }
    }
  }
}

TEST_CASE("mistakes in the table of profiles have their places") {
  CHECK(mistakes_in("cards: [a30]\n") ==
        "mig.yaml:1:1: error: the profiles of MIG are a list of tables, not a mapping\n"
        "  cards: [a30]\n"
        "  ^\n");
  CHECK(mistakes_in("- cards: [a30]\n  slices: 4\n  source: s\n  profiles:\n"
                    "    - {name: 1g.6gb, memory: 5/4}\n") ==
        "mig.yaml:5:30: error: 'memory' must be a share such as 1/8, not '5/4'\n"
        "      - {name: 1g.6gb, memory: 5/4}\n"
        "                               ^~~\n");
}
