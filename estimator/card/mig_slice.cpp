#include "estimator/card/mig_slice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "estimator/base/name_match.hpp"
#include "estimator/card/card_name.hpp"
#include "estimator/card/card_rules.hpp"
#include "estimator/text/field_reader.hpp"

namespace stowage {

namespace {

/// The digits at `at`, which moves behind them; "": there are none.
std::string_view digits(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

bool skip(std::string_view text, std::size_t& at, std::string_view any_of) {
  if (at >= text.size() || any_of.find(text[at]) == any_of.npos) return false;
  ++at;
  return true;
}

int small_number(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// "3g.20gb" or "1c.3g.20gb" at `at`, which moves behind it.
std::optional<NamedSlice> slice_at(std::string_view text, std::size_t& at) {
  constexpr std::string_view separators = ".-_ ";
  NamedSlice slice;
  std::string_view count = digits(text, at);
  if (count.empty() || count.size() > 2) return std::nullopt;
  if (skip(text, at, "c")) {
    slice.compute_slices = small_number(count);
    skip(text, at, separators);
    count = digits(text, at);
    if (count.empty() || count.size() > 2) return std::nullopt;
  }
  if (!skip(text, at, "g")) return std::nullopt;
  skip(text, at, separators);
  const std::string_view gigabytes = digits(text, at);
  if (gigabytes.empty() || gigabytes.size() > 3 || !skip(text, at, "g")) return std::nullopt;
  if (!skip(text, at, "b")) return std::nullopt;
  slice.profile = fmt::format("{}g.{}gb", count, gigabytes);
  return slice;
}

/// Behind the media engines that a profile may have: "+me", "-me", ".me", "+me.all", "+gfx".
std::size_t behind_engines(std::string_view text, std::size_t at) {
  for (const std::string_view engines : {"me.all", "me", "gfx"}) {
    const bool is_marked = at < text.size() && std::string_view("+-.").find(text[at]) != text.npos;
    if (is_marked && text.substr(at + 1).starts_with(engines)) return at + 1 + engines.size();
  }
  return at;
}

void remove_word(std::string& text, std::string_view word) {
  if (const std::size_t at = text.find(word); at != text.npos) text.replace(at, word.size(), " ");
}

/// A share such as 1/8: the numerator over the denominator, above 0 and at most 1.
bool read_fraction(FieldReader& fields, std::string_view key, double& target) {
  std::string text;
  if (!fields.word(key, text, Presence::required)) return false;
  std::size_t at = 0;
  const int numerator = small_number(digits(text, at));
  const bool divided = skip(text, at, "/");
  const int denominator = small_number(digits(text, at));
  if (!divided || at != text.size() || numerator < 1 || denominator < numerator) {
    return fields.refuse(*fields.find(key), key, "a share such as 1/8");
  }
  target = static_cast<double>(numerator) / denominator;
  return true;
}

MigProfile read_profile(const YamlNode& node, Mistakes& mistakes) {
  FieldReader fields(node, {.of = "a profile", .file = "a profile"}, mistakes);
  MigProfile profile;
  fields.word("name", profile.name, Presence::required);
  read_fraction(fields, "memory", profile.memory_share);
  fields.size("total", profile.total, Presence::optional, "9984 MiB");
  std::int64_t count = 0;
  fields.integer("multiprocessors", 1, 1000, count, Presence::optional, "a count");
  profile.multiprocessors = static_cast<int>(count);
  fields.finish();
  return profile;
}

MigTable read_table(const YamlNode& node, Mistakes& mistakes) {
  FieldReader fields(node, {.of = "a table of profiles", .file = "a table of profiles"}, mistakes);
  MigTable table;
  std::int64_t slices = table.slices;
  fields.integer("slices", 1, 64, slices);
  table.slices = static_cast<int>(slices);
  fields.word("source", table.source, Presence::required);
  if (const YamlNode* cards = fields.find("cards")) {
    for (const YamlNode* card : cards->items) table.cards.push_back(card->text);
  }
  if (const YamlNode* profiles = fields.find("profiles")) {
    for (const YamlNode* profile : profiles->items) {
      table.profiles.push_back(read_profile(*profile, mistakes));
    }
  }
  fields.finish();
  return table;
}

/// Puts another number behind a key of the description for cuDNN.
void set_number(std::string& json, std::string_view key, std::int64_t value) {
  const std::string name = fmt::format("\"{}\": ", key);
  const std::size_t at = json.find(name);
  if (at == json.npos) return;
  const std::size_t begin = at + name.size();
  const std::size_t end = json.find_first_not_of("0123456789", begin);
  json.replace(begin, end - begin, std::to_string(value));
}

int multiprocessors_of(const Card& whole, const MigTable& table, const MigProfile& profile,
                       const NamedSlice& named) {
  const int compute_slices =
      small_number(std::string_view(profile.name).substr(0, profile.name.find('g')));
  const int all = profile.multiprocessors > 0 ? profile.multiprocessors
                                              : whole.sm_count / table.slices * compute_slices;
  if (named.compute_slices == 0 || named.compute_slices >= compute_slices) return std::max(all, 1);
  return std::max(all / compute_slices * named.compute_slices, 1);
}

/// A slice of an H200 has 16.00 GiB where its share is 17.55: the least part of a share that was
/// seen. On other cards it is 95 percent and more.
constexpr double least_part_of_share = 0.91;

void set_totals(Card& card, const MigTable& table, const MigProfile& profile) {
  const auto part = [&](Bytes bytes) {
    return Bytes(std::llround(static_cast<double>(bytes.count()) * profile.memory_share));
  };
  if (profile.total > Bytes()) {
    card.cuda_total = std::min(profile.total, card.cuda_total);
    card.total_source = fmt::format("the profile's memory: {}", table.source);
    std::erase(card.by_rule, "cuda_total");
  } else if (profile.memory_share < 1) {
    const auto mebibytes = static_cast<std::int64_t>(
        static_cast<double>(part(card.nvml_total).count()) * least_part_of_share / 0x1p20);
    card.cuda_total = Bytes(mebibytes << 20);
    card.total_source = "by rule: 91 percent of the slice's share of the card's memory";
    if (std::ranges::find(card.by_rule, "cuda_total") == card.by_rule.end()) {
      card.by_rule.insert(card.by_rule.begin(), "cuda_total");
    }
  }
  card.nvml_total = card.cuda_total;
  card.memory = part(card.memory);
}

}  // namespace

std::optional<NamedSlice> named_slice(std::string_view request) {
  const std::string text = lower_case(request);
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_digit(text[begin]) || (begin > 0 && is_digit(text[begin - 1]))) continue;
    std::size_t end = begin;
    auto slice = slice_at(text, end);
    if (!slice) continue;
    end = behind_engines(text, end);
    std::string rest = text.substr(0, begin) + ' ' + text.substr(end);
    for (const std::string_view word : {"nvidia.com/", "mig", "device"}) remove_word(rest, word);
    const auto names_something = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    if (std::ranges::any_of(rest, names_something)) slice->card = rest;
    return slice;
  }
  return std::nullopt;
}

const MigProfile* MigTable::find(std::string_view profile) const {
  const auto found = std::ranges::find(profiles, profile, &MigProfile::name);
  return found == profiles.end() ? nullptr : &*found;
}

Result<std::vector<MigTable>> read_mig_tables(const SourceTextPtr& source) {
  const auto document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  if (!root.is_sequence()) {
    return failure(
        {.message = fmt::format("the profiles of MIG are a list of tables, not {}", describe(root)),
         .span = span_of(source, root.mark)});
  }
  Mistakes mistakes(source);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  std::vector<MigTable> tables;
  for (const YamlNode* table : root.items) tables.push_back(read_table(*table, mistakes));
  Diagnostics errors = std::move(mistakes).in_order();
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return tables;
}

// What scales with the multiprocessors: rates and the context's local memory. With the share of
// memory: bandwidth and L2. The link to the host is the whole card's.
Card card_of_slice(const Card& whole, const MigTable& table, const MigProfile& profile,
                   const NamedSlice& named) {
  Card card = whole;
  const std::string instance =
      named.compute_slices > 0 ? fmt::format("{}c.", named.compute_slices) : std::string();
  card.name = fmt::format("{} MIG {}{}", whole.name, instance, profile.name);
  card.observed_totals.clear();
  set_totals(card, table, profile);
  card.sm_count = multiprocessors_of(whole, table, profile, named);
  const double compute = static_cast<double>(card.sm_count) / std::max(whole.sm_count, 1);
  for (double Card::*rate : {&Card::fp32_flops, &Card::tf32_flops, &Card::fp16_flops}) {
    card.*rate *= compute;
  }
  card.memory_bandwidth *= profile.memory_share;
  const std::int64_t threads =
      std::int64_t{resident_threads(whole)} * (whole.sm_count - card.sm_count);
  const Bytes lacking = 1_KiB * threads;
  card.context = std::max(whole.context - lacking, Bytes());
  card.context_source = fmt::format(
      "{}, less {} of local memory for the multiprocessors that the "
      "slice lacks",
      whole.context_source, format_bytes(lacking));
  for (ProcessMeasurement& measured : card.measurements) {
    if (measured.context) measured.context = std::max(*measured.context - lacking, Bytes());
  }
  std::string& json = card.cudnn_device_json;
  set_number(json, "multiProcessorCount", card.sm_count);
  set_number(json, "totalGlobalMem", card.cuda_total.count());
  const std::size_t l2 = json.find("\"l2CacheSize\": ");
  if (l2 != json.npos) {
    const double bytes = std::strtod(json.c_str() + json.find(' ', l2), nullptr);
    set_number(json, "l2CacheSize", std::llround(bytes * profile.memory_share));
  }
  return card;
}

}  // namespace stowage
