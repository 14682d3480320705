#include "estimator/card/card_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace stowage {
namespace {

std::vector<std::string_view> words_of(std::string_view stem) {
  std::vector<std::string_view> words;
  while (!stem.empty()) {
    const std::size_t dash = stem.find('-');
    words.push_back(stem.substr(0, dash));
    stem = dash == stem.npos ? std::string_view() : stem.substr(dash + 1);
  }
  return words;
}

bool is_memory_size(std::string_view word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::ranges::all_of(word.substr(0, word.size() - 2), is_digit);
}

bool may_be_left_out(std::string_view word) {
  constexpr std::array<std::string_view, 15> variants = {
      "rtx",     "gtx",    "sxm",       "sxm2", "sxm4", "sxm5", "pcie", "nvl",
      "maxwell", "pascal", "blackwell", "nano", "nx",   "dgx",  "spark"};
  return is_memory_size(word) || std::ranges::find(variants, word) != variants.end();
}

// The ways to write a word: in full, "16gb" as "16g", "sxm4" as "sxm"; an H100 with HBM3 (as the
// driver calls it) is the SXM5 one. A Tesla of Kepler's has a letter for its way of cooling.
std::vector<std::string_view> spellings(std::string_view word) {
  std::vector<std::string_view> all = {word};
  if (is_memory_size(word)) all.push_back(word.substr(0, word.size() - 1));
  if (word.starts_with("sxm") && word.size() == 4) all.push_back("sxm");
  if (word == "sxm5") all.push_back("hbm3");
  if (word == "k20") all.insert(all.end(), {"k20m", "k20c", "k20s"});
  if (word == "k20x") all.push_back("k20xm");
  if (word == "k40") all.insert(all.end(), {"k40m", "k40c", "k40s", "k40st"});
  if (word == "laptop") all.push_back("mobile");
  return all;
}

enum class Match { none, open, full };

// Whether `rest` is made of words of `unused`, and what is left of them. At most six words.
Match match(std::string_view rest, const std::vector<std::string_view>& unused) {
  if (rest.empty()) {
    if (unused.empty()) return Match::full;
    return std::ranges::all_of(unused, may_be_left_out) ? Match::open : Match::none;
  }
  Match best = Match::none;
  for (std::size_t i = 0; i < unused.size(); ++i) {
    std::vector<std::string_view> others = unused;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    for (const std::string_view spelling : spellings(unused[i])) {
      if (!rest.starts_with(spelling)) continue;
      best = std::max(best, match(rest.substr(spelling.size()), others));
    }
  }
  return best;
}

}  // namespace

std::string squeeze_card_name(std::string_view request) {
  std::string name;
  for (const char c : request) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) name += static_cast<char>(std::tolower(byte));
  }
  constexpr std::array<std::string_view, 12> makers = {
      "nvidia",     "geforce",       "tesla",
      "quadro",     "grid",          "instinct",
      "generation", "serveredition", "workstationedition",
      "onedie",     "onegpu",        "gpu"};
  for (const std::string_view word : makers) {
    const std::size_t at = name.find(word);
    if (at != name.npos) name.erase(at, word.size());
  }
  return name;
}

std::vector<std::string> matching_stems(std::string_view squeezed,
                                        std::span<const std::string> stems) {
  std::vector<std::string> open;
  if (squeezed.empty()) return open;
  for (const std::string& stem : stems) {
    switch (match(squeezed, words_of(stem))) {
      case Match::full:
        return {stem};
      case Match::open:
        open.push_back(stem);
        break;
      case Match::none:
        break;
    }
  }
  return open;
}

int gigabytes_in_stem(std::string_view stem) {
  for (const std::string_view word : words_of(stem)) {
    if (!is_memory_size(word) || word.size() > 7) continue;
    return std::stoi(std::string(word.substr(0, word.size() - 2)));
  }
  return 0;
}

}  // namespace stowage
