#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/card/card_name.hpp"
#include "estimator/card/mig_slice.hpp"
#include "estimator/card/other_maker.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {
namespace {

namespace fs = std::filesystem;

Result<Card> read_card_at(const fs::path& path, FileTypes types = FileTypes::regular) {
  auto source = read_source(path.string(), FileKind::card, types);
  if (!source) return tl::unexpected(std::move(source.error()));
  return read_card(*source);
}

// Sorted, so that the first of several equals is the same everywhere.
Result<std::vector<std::string>> stems_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> stems;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".yaml") stems.push_back(entry->path().stem().string());
  }
  if (error) {
    return failure(fmt::format("cannot list the GPUs in '{}': {}", directory, error.message()));
  }
  std::ranges::sort(stems);
  return stems;
}

bool is_file(const std::string& name) {
  std::error_code error;
  return name.ends_with(".yaml") || name.ends_with(".yml") || fs::is_regular_file(name, error);
}

/// A variant that a name leaves open, and what it has.
struct Variant {
  std::string stem;
  Card card;
};

/// Where totals differ by less, variants have the same memory: the same chips, counted otherwise.
constexpr double same_memory = 0.05;

class Catalogue {
 public:
  explicit Catalogue(const std::string& directory) : directory_(directory) {}

  [[nodiscard]] Result<Card> read(const std::string& stem) const {
    return read_card_at(fs::path(directory_) / (stem + ".yaml"));
  }

  /// The folder is listed when it is first asked for.
  [[nodiscard]] const Result<std::vector<std::string>>& stems() const {
    if (!stems_) stems_ = stems_in(directory_);
    return *stems_;
  }

  /// The stem that the file of aliases gives a squeezed name; "": none.
  [[nodiscard]] Result<std::string> alias(const std::string& squeezed) const {
    const auto source = beside("gpu-aliases.yaml");
    if (!source) return tl::unexpected(source.error());
    if (!*source) return std::string();
    const auto document = read_yaml(*source);
    if (!document) return tl::unexpected(document.error());
    const YamlNode* const meaning = document->root->find(squeezed);
    return meaning == nullptr ? std::string() : meaning->text;
  }

  [[nodiscard]] Result<std::vector<MigTable>> mig_tables() const {
    const auto source = beside("mig-profiles.yaml");
    if (!source) return tl::unexpected(source.error());
    if (!*source) return std::vector<MigTable>();
    return read_mig_tables(*source);
  }

 private:
  /// A file beside the folder of cards; null: there is none, as beside a folder of a user's own.
  [[nodiscard]] Result<SourceTextPtr> beside(const char* file) const {
    const fs::path path = fs::path(directory_).parent_path() / file;
    std::error_code code;
    if (!fs::exists(path, code)) return SourceTextPtr();
    return read_source(path.string(), FileKind::card, FileTypes::regular);
  }

  const std::string& directory_;
  mutable std::optional<Result<std::vector<std::string>>> stems_;
};

/// A Max-Q board is a laptop's card with lower rates, or the card itself with lower ones.
struct PlainName {
  std::string squeezed;
  bool is_max_q = false;
};
PlainName plain_name(std::string_view name) {
  PlainName plain{squeeze_card_name(name)};
  for (const std::string_view word : {"withmaxqdesign", "maxqdesign", "maxq"}) {
    const std::size_t at = plain.squeezed.find(word);
    if (at == std::string::npos) continue;
    plain.squeezed.erase(at, word.size());
    plain.is_max_q = true;
    break;
  }
  return plain;
}

/// The stems that a name leaves open.
Result<std::vector<std::string>> stems_of(const PlainName& name, const Catalogue& catalogue) {
  const auto& stems = catalogue.stems();
  if (!stems) return stems;
  if (name.is_max_q) {
    auto laptops = matching_stems(name.squeezed + "laptop", *stems);
    if (!laptops.empty()) return laptops;
  }
  auto matches = matching_stems(name.squeezed, *stems);
  if (!matches.empty()) return matches;
  const auto alias = catalogue.alias(name.squeezed);
  if (!alias) return tl::unexpected(alias.error());
  if (!alias->empty()) matches.push_back(*alias);
  return matches;
}

// A name of two or three letters that differs in one is another name, not a slip.
constexpr std::size_t shortest_misspelt = 4;

tl::unexpected<Diagnostics> unknown_card(const std::string& name, const std::string& squeezed,
                                         const Catalogue& catalogue) {
  if (const auto maker = other_maker_of(name)) return failure(no_cuda(name, *maker));
  std::string hint = hint_of(Cure::described_card);
  if (const auto& stems = catalogue.stems(); stems && squeezed.size() >= shortest_misspelt) {
    std::vector<std::string> names;
    for (const std::string& stem : *stems) names.push_back(squeeze_card_name(stem));
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (const auto near = closest(squeezed, views)) {
      const auto at = std::ranges::find(views, *near) - views.begin();
      hint = fmt::format("did you mean '{}'?", (*stems)[static_cast<std::size_t>(at)]);
    }
  }
  return failure(fmt::format("unknown GPU '{}'", name), hint);
}

std::string listed(const std::vector<std::string>& names) {
  return alternatives(std::vector<std::string_view>(names.begin(), names.end()));
}

Result<std::vector<Variant>> read_variants(const std::vector<std::string>& stems,
                                           const Catalogue& catalogue) {
  std::vector<Variant> variants;
  for (const std::string& stem : stems) {
    auto card = catalogue.read(stem);
    if (!card) return tl::unexpected(std::move(card.error()));
    variants.push_back({stem, *std::move(card)});
  }
  return variants;
}

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> stems;
  stems.reserve(variants.size());
  for (const Variant& variant : variants) stems.push_back(variant.stem);
  return stems;
}

tl::unexpected<Diagnostics> several_cards(const std::string& name, std::vector<Variant> variants) {
  std::ranges::stable_sort(variants, {},
                           [](const Variant& variant) { return variant.card.cuda_total; });
  std::vector<std::string> sizes;
  sizes.reserve(variants.size());
  for (const Variant& variant : variants) {
    sizes.push_back(fmt::format("{} ({})", variant.stem, format_bytes(variant.card.cuda_total)));
  }
  return failure(fmt::format("'{}' is the name of cards with different memory: {}", name,
                             fmt::join(sizes, ", ")),
                 fmt::format("did you mean {}?", listed(names_of(variants))));
}

/// The variant that is meant: the one whose total is nearest to `total`; without a total the first,
/// where all have the same memory. Precondition: there are some.
Result<FoundCard> choose_variant(const std::string& name, std::vector<Variant> variants,
                                 std::optional<Bytes> total) {
  if (variants.size() == 1) return FoundCard{std::move(variants.front().card), ""};
  if (total) {
    const auto nearest = std::ranges::min_element(variants, {}, [&](const Variant& variant) {
      return std::abs(variant.card.cuda_total.count() - total->count());
    });
    return FoundCard{nearest->card, fmt::format("'{}' is taken for {}, whose memory is nearest",
                                                name, nearest->stem)};
  }
  const auto [least, most] = std::ranges::minmax(
      variants, {}, [](const Variant& variant) { return variant.card.cuda_total; });
  if (static_cast<double>(most.card.cuda_total.count()) >
      static_cast<double>(least.card.cuda_total.count()) * (1 + same_memory)) {
    return several_cards(name, std::move(variants));
  }
  return FoundCard{variants.front().card,
                   fmt::format("'{}' may be {}, which have the same memory: took {}", name,
                               fmt::join(names_of(variants), ", "), variants.front().stem)};
}

/// The profiles of the cards that can be divided: "a100-pcie-40gb mig 1g.5gb".
tl::unexpected<Diagnostics> profile_of_no_card(const std::string& name, const std::string& profile,
                                               const std::vector<MigTable>& tables) {
  std::vector<std::string> profiles;
  for (const MigTable& table : tables) {
    for (const MigProfile& known : table.profiles) profiles.push_back(known.name);
  }
  const std::vector<std::string_view> views(profiles.begin(), profiles.end());
  std::string hint = did_you_mean(profile, views);
  if (hint.empty()) hint = "nvidia-smi mig -lgip lists a card's profiles";
  return failure(fmt::format("'{}': no card has the MIG profile {}", name, profile), hint);
}

/// Of a slice alone, or of one that the named card lacks.
tl::unexpected<Diagnostics> unfit_slice(const std::string& name, const NamedSlice& slice,
                                        const std::vector<std::string>& named,
                                        const std::vector<MigTable>& tables) {
  std::vector<std::string> having, its_own;
  for (const MigTable& table : tables) {
    const bool has = table.find(slice.profile) != nullptr;
    for (const std::string& stem : table.cards) {
      if (has) having.push_back(fmt::format("{} mig {}", stem, slice.profile));
      if (std::ranges::find(named, stem) == named.end() || has) continue;
      for (const MigProfile& profile : table.profiles) {
        its_own.push_back(fmt::format("{} mig {}", stem, profile.name));
      }
    }
  }
  if (having.empty() && its_own.empty()) return profile_of_no_card(name, slice.profile, tables);
  if (named.empty()) {
    return failure(fmt::format("'{}' is a slice of several cards, and no card is named", name),
                   fmt::format("did you mean {}?", listed(having)));
  }
  if (its_own.empty()) {
    return failure(fmt::format("'{}': MIG does not divide {}", name, fmt::join(named, ", ")),
                   fmt::format("cards with that slice: {}", listed(having)));
  }
  return failure(
      fmt::format("'{}': {} has no MIG profile {}", name, fmt::join(named, ", "), slice.profile),
      fmt::format("did you mean {}?", listed(its_own)));
}

Result<FoundCard> find_slice(const std::string& name, const NamedSlice& slice,
                             const Catalogue& catalogue, std::optional<Bytes> total) {
  const auto tables = catalogue.mig_tables();
  if (!tables) return tl::unexpected(tables.error());
  std::vector<std::string> named;
  if (!slice.card.empty()) {
    const PlainName plain = plain_name(slice.card);
    const auto stems = stems_of(plain, catalogue);
    if (!stems) return tl::unexpected(stems.error());
    if (stems->empty()) return unknown_card(name, plain.squeezed, catalogue);
    named = *stems;
  }
  std::vector<std::string> divided;
  for (const MigTable& table : *tables) {
    if (table.find(slice.profile) == nullptr) continue;
    for (const std::string& stem : table.cards) {
      if (std::ranges::find(named, stem) != named.end()) divided.push_back(stem);
    }
  }
  std::ranges::sort(divided);
  if (divided.empty()) return unfit_slice(name, slice, named, *tables);
  auto variants = read_variants(divided, catalogue);
  if (!variants) return tl::unexpected(std::move(variants.error()));
  for (Variant& variant : *variants) {
    const auto table = std::ranges::find_if(*tables, [&](const MigTable& one) {
      return std::ranges::find(one.cards, variant.stem) != one.cards.end();
    });
    variant.card = card_of_slice(variant.card, *table, *table->find(slice.profile), slice);
  }
  return choose_variant(name, *std::move(variants), total);
}

}  // namespace

Result<FoundCard> find_card(const std::string& name, const std::string& directory,
                            std::optional<Bytes> total) {
  if (is_file(name)) {
    return read_card_at(name, FileTypes::any).map([](Card card) {
      return FoundCard{std::move(card), ""};
    });
  }
  const Catalogue catalogue(directory);
  if (const auto slice = named_slice(name)) return find_slice(name, *slice, catalogue, total);
  const PlainName plain = plain_name(name);
  const auto stems = stems_of(plain, catalogue);
  if (!stems) return tl::unexpected(stems.error());
  if (stems->empty()) return unknown_card(name, plain.squeezed, catalogue);
  auto variants = read_variants(*stems, catalogue);
  if (!variants) return tl::unexpected(std::move(variants.error()));
  auto found = choose_variant(name, *std::move(variants), total);
  if (!found || !found->note.empty()) return found;
  if (plain.is_max_q) {
    found->note = fmt::format(
        "'{}' is taken for {}: a Max-Q board has the same memory, and its "
        "rates are lower",
        name, found->card.name);
  } else if (const auto maker = other_maker_of(name)) {
    found->note = fmt::format("'{}' is taken for NVIDIA's {}; {}'s runs no CUDA", name,
                              found->card.name, maker->maker);
  }
  return found;
}

Result<std::vector<Card>> all_cards(const std::string& directory) {
  const auto stems = stems_in(directory);
  if (!stems) return tl::unexpected(stems.error());
  std::vector<Card> cards;
  Diagnostics errors;
  for (const std::string& stem : *stems) {
    auto card = read_card_at(fs::path(directory) / (stem + ".yaml"));
    if (card) {
      cards.push_back(std::move(*card));
    } else {
      errors.insert(errors.end(), card.error().begin(), card.error().end());
    }
  }
  if (!errors.empty()) return tl::unexpected(errors);
  std::ranges::stable_sort(cards, {}, &Card::name);
  return cards;
}

}  // namespace stowage
