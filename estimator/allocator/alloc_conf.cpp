#include "estimator/allocator/alloc_conf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "estimator/base/quantity.hpp"

namespace stowage {

namespace {

struct Token {
  std::string text;  ///< without white space; a key, a value or one of : , [ ]
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool is_mark(const Token& token, char mark) {
  return token.text.size() == 1 && token.text.front() == mark;
}
bool is_any_mark(const Token& token) {
  return token.text.size() == 1 &&
         std::string_view(":,[]").find(token.text[0]) != std::string::npos;
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  bool open = false;  // the last token is a word that goes on
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || (c >= '\t' && c <= '\r')) continue;
    const bool mark = std::string_view(":,[]").find(c) != std::string_view::npos;
    if (mark || !open) tokens.push_back({"", i, i});
    tokens.back().text += c;
    tokens.back().end = i + 1;
    open = !mark;
  }
  return tokens;
}

std::optional<double> as_number(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// A whole number of at least 0; a number beyond 64 bits becomes the largest one.
std::optional<std::int64_t> as_whole(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return {};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return std::numeric_limits<std::int64_t>::max();
  return value;
}

Bytes mebibytes(std::int64_t count) {
  constexpr std::int64_t most = std::int64_t{1} << 40;  // beyond it all is without a limit
  return 1_MiB * std::min(count, most);
}

/// PyTorch compares sizes with 512 times this many, in 64 bits without a sign.
constexpr std::int64_t most_divisions = std::int64_t{1} << 54;

bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

class ConfReader {
 public:
  ConfReader(std::string_view text, std::string name)
      : source_(std::make_shared<SourceText>(SourceText{std::move(name), std::string(text)})),
        tokens_(tokens_of(text)) {}

  Result<AllocConf> read();

 private:
  using Value = std::span<const Token>;  ///< one token, or those between [ and ], with these
  struct Entry {
    Token key;
    Value value;
  };
  struct Key {
    std::string_view name;
    void (ConfReader::*read)(Value);
    bool has_effect = true;
  };
  static std::span<const Key> keys();

  [[nodiscard]] std::optional<std::vector<Entry>> entries();
  void read_entry(const Entry& entry);

  void large_segment(Value value);
  void max_split_size(Value value);
  void max_non_split_rounding(Value value);
  void garbage_collection(Value value);
  void roundup(Value value);
  void roundup_list(Value value);
  void expandable(Value value);
  void fraction(Value value);
  void refuse_early(Value value);
  void backend(Value value);
  void any_boolean(Value value);
  void any_whole(Value value);
  void any_value(Value) {}

  [[nodiscard]] std::optional<std::string> single(Value value, std::string_view expected);
  [[nodiscard]] std::optional<bool> boolean(Value value);
  [[nodiscard]] std::optional<std::int64_t> whole(Value value);
  [[nodiscard]] std::optional<std::int64_t> division_count(Value value);
  /// A size in MiB that is at least a large segment's.
  [[nodiscard]] std::optional<Bytes> at_least_large_segment(Value value);

  void fail(Value at, std::string message, std::string hint = {});
  void fail(std::size_t begin, std::size_t end, std::string message, std::string hint = {});

  SourceTextPtr source_;
  std::vector<Token> tokens_;
  std::string_view key_;  ///< the one being read
  AllocConf conf_;
  Diagnostics mistakes_;
};

std::span<const ConfReader::Key> ConfReader::keys() {
  using R = ConfReader;
  static constexpr Key all[] = {
      // First: others are checked against it.
      {"large_segment_size_mb", &R::large_segment},
      {"max_split_size_mb", &R::max_split_size},
      {"max_non_split_rounding_mb", &R::max_non_split_rounding},
      {"garbage_collection_threshold", &R::garbage_collection},
      {"roundup_power2_divisions", &R::roundup},
      {"expandable_segments", &R::expandable},
      {"per_process_memory_fraction", &R::fraction},
      {"throw_on_cudamalloc_oom", &R::refuse_early},
      {"backend", &R::backend},
      {"release_lock_on_cudamalloc", &R::any_boolean, false},
      {"release_lock_on_hipmalloc", &R::any_boolean, false},
      {"graph_capture_record_stream_reuse", &R::any_boolean, false},
      {"expandable_segments_reserve", &R::any_value, false},
      {"expandable_segments_reserve_by_class", &R::any_value, false},
      {"pinned_use_cuda_host_register", &R::any_boolean, false},
      {"pinned_use_hip_host_register", &R::any_boolean, false},
      {"pinned_num_register_threads", &R::any_whole, false},
      {"pinned_use_background_threads", &R::any_boolean, false},
      {"pinned_reserve_segment_size_mb", &R::any_whole, false},
      {"pinned_max_round_threshold_mb", &R::any_whole, false},
      {"pinned_max_cached_size_mb", &R::any_whole, false},
      {"pinned_free_catch_all", &R::any_boolean, false},
  };
  return all;
}

Result<AllocConf> ConfReader::read() {
  const auto entries = this->entries();
  if (entries) {
    // The rounding that unsplit blocks allow follows the large segment unless it is given.
    for (const Entry& entry : *entries) {
      if (entry.key.text == keys().front().name) read_entry(entry);
    }
    conf_.settings.max_non_split_rounding = conf_.settings.large_segment;
    for (const Entry& entry : *entries) {
      if (entry.key.text != keys().front().name) read_entry(entry);
    }
  }
  if (!mistakes_.empty()) {
    std::stable_sort(mistakes_.begin(), mistakes_.end(),
                     [](const auto& a, const auto& b) { return a.span.column < b.span.column; });
    return tl::unexpected(std::move(mistakes_));
  }
  return std::move(conf_);
}

/// The text as key-value pairs; none: a syntax error was reported.
std::optional<std::vector<ConfReader::Entry>> ConfReader::entries() {
  std::vector<Entry> entries;
  const std::size_t size = tokens_.size();
  const auto missing = [&](std::size_t i, std::string_view expected) {
    if (i >= size) {
      const std::size_t end = size == 0 ? 0 : tokens_.back().end;
      fail(end, end + 1, fmt::format("expected {}, found the end", expected));
    } else {
      fail(tokens_[i].begin, tokens_[i].end,
           fmt::format("expected {}, found '{}'", expected, tokens_[i].text));
    }
    return std::nullopt;
  };
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t key = i;
    if (is_any_mark(tokens_[key])) return missing(key, "a key");
    const std::string after = fmt::format("':' and a value after '{}'", tokens_[key].text);
    if (++i >= size || !is_mark(tokens_[i], ':')) return missing(i, after);
    const std::size_t begin = ++i;
    if (begin < size && is_mark(tokens_[begin], '[')) {
      while (i < size && !is_mark(tokens_[i], ']')) ++i;
      if (i >= size) {
        fail(tokens_[begin].begin, tokens_[begin].end, "this '[' is never closed");
        return std::nullopt;
      }
    } else if (begin >= size || is_any_mark(tokens_[begin])) {
      return missing(begin, fmt::format("a value for '{}'", tokens_[key].text));
    }
    entries.push_back({tokens_[key], Value(tokens_).subspan(begin, i + 1 - begin)});
    if (++i < size && !is_mark(tokens_[i], ',')) return missing(i, "',' or the end");
  }
  return entries;
}

void ConfReader::read_entry(const Entry& entry) {
  const auto all = keys();
  const auto key = std::find_if(all.begin(), all.end(),
                                [&](const Key& row) { return row.name == entry.key.text; });
  if (key == all.end()) {
    std::vector<std::string_view> names;
    for (const Key& row : all) names.push_back(row.name);
    fail(entry.key.begin, entry.key.end, fmt::format("unknown key '{}'", entry.key.text),
         did_you_mean(entry.key.text, names));
    return;
  }
  key_ = key->name;
  (this->*key->read)(entry.value);
  auto& named = conf_.without_effect;
  if (!key->has_effect && std::find(named.begin(), named.end(), key_) == named.end()) {
    named.emplace_back(key_);
  }
}

void ConfReader::large_segment(Value value) {
  const auto count = whole(value);
  if (!count) return;
  if (mebibytes(*count) <= smallest_own_segment) {
    return fail(value, fmt::format("'{}' must be more than 10", key_));
  }
  conf_.settings.large_segment = mebibytes(*count);
}

void ConfReader::max_split_size(Value value) {
  if (const auto size = at_least_large_segment(value)) conf_.settings.max_split_size = size;
}

void ConfReader::max_non_split_rounding(Value value) {
  if (const auto size = at_least_large_segment(value)) {
    conf_.settings.max_non_split_rounding = *size;
  }
}

void ConfReader::garbage_collection(Value value) {
  const auto text = single(value, "a number");
  if (!text) return;
  const auto share = as_number(*text);
  if (!share || *share <= 0 || *share >= 1) {
    return fail(value, fmt::format("'{}' must be a number between 0 and 1, not '{}'", key_, *text));
  }
  conf_.settings.garbage_collection_threshold = *share;
}

void ConfReader::roundup(Value value) {
  if (is_mark(value.front(), '[')) return roundup_list(value);
  const auto count = division_count(value);
  if (!count) return;
  if (!is_power_of_two(*count)) {
    return fail(value, fmt::format("'{}' must be a power of two, not {}", key_, *count));
  }
  conf_.settings.roundup_power2_divisions.fill(*count);
}

/// [64:8,256:4,>:1]: sizes of 64 MiB and less, of 256 MiB, and of more than the one before it.
void ConfReader::roundup_list(Value value) {
  RoundupDivisions& divisions = conf_.settings.roundup_power2_divisions;
  bool first = true;
  std::size_t last = 0;
  for (std::size_t i = 1; i + 1 < value.size(); ++i) {
    const auto rest = value.subspan(i, value.size() - 1 - i);
    if (rest.size() < 3 || is_any_mark(rest[0]) || !is_mark(rest[1], ':') || is_any_mark(rest[2])) {
      return fail(rest.first(1), "expected 'MiB:divisions' or '>:divisions' in the list");
    }
    const auto count = division_count(rest.subspan(2, 1));
    if (!count) return;
    if (*count != 0 && !is_power_of_two(*count)) {
      return fail(rest.subspan(2, 1),
                  fmt::format("divisions must be 0 or a power of two, not {}", *count));
    }
    if (rest[0].text == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions.end(), *count);
    } else {
      const auto boundary = whole(rest.first(1));
      if (!boundary) return;
      if (!is_power_of_two(*boundary)) {
        return fail(rest.first(1),
                    fmt::format("a size must be a power of two in MiB, not {}", *boundary));
      }
      last = std::min<std::size_t>(
          static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(*boundary)) - 1),
          divisions.size() - 1);
      if (first) std::fill_n(divisions.begin(), last, *count);
      first = false;
      divisions[last] = *count;
    }
    i += 3;
    if (i + 1 < value.size() && !is_mark(value[i], ',')) {
      return fail(value.subspan(i, 1), "expected ',' or ']' in the list");
    }
  }
}

void ConfReader::expandable(Value value) {
  if (const auto on = boolean(value)) conf_.settings.expandable_segments = *on;
}

void ConfReader::fraction(Value value) {
  const auto text = single(value, "a number");
  if (!text) return;
  const auto share = as_number(*text);
  if (!share || *share < 0 || *share > 1) {
    return fail(value, fmt::format("'{}' must be a number from 0 to 1, not '{}'", key_, *text));
  }
  conf_.settings.memory_fraction = *share < 1 ? share : std::nullopt;
}

void ConfReader::refuse_early(Value value) {
  if (const auto on = boolean(value)) conf_.settings.refuse_early = *on;
}

void ConfReader::backend(Value value) {
  const auto name = single(value, "a name");
  if (!name || *name == "native") return;
  if (*name == "cudaMallocAsync") {
    return fail(value, "the backend 'cudaMallocAsync' is not simulated", "only 'native' is");
  }
  fail(value, fmt::format("unknown backend '{}'", *name),
       "PyTorch has 'native' and 'cudaMallocAsync'");
}

void ConfReader::any_boolean(Value value) { (void)boolean(value); }
void ConfReader::any_whole(Value value) { (void)whole(value); }

std::optional<std::string> ConfReader::single(Value value, std::string_view expected) {
  if (value.size() == 1) return value.front().text;
  fail(value, fmt::format("'{}' takes {}, not a list", key_, expected));
  return std::nullopt;
}

std::optional<bool> ConfReader::boolean(Value value) {
  const auto text = single(value, "True or False");
  if (!text) return std::nullopt;
  if (*text == "True") return true;
  if (*text == "False") return false;
  static constexpr std::string_view words[] = {"True", "False"};
  std::string capitalized = *text;
  if (!capitalized.empty() && capitalized[0] >= 'a' && capitalized[0] <= 'z') {
    capitalized[0] = static_cast<char>(capitalized[0] - 'a' + 'A');
  }
  fail(value, fmt::format("'{}' must be True or False, not '{}'", key_, *text),
       did_you_mean(capitalized, words));
  return std::nullopt;
}

std::optional<std::int64_t> ConfReader::whole(Value value) {
  const auto text = single(value, "a whole number");
  if (!text) return std::nullopt;
  const auto count = as_whole(*text);
  if (!count) fail(value, fmt::format("expected a whole number, found '{}'", *text));
  return count;
}

std::optional<std::int64_t> ConfReader::division_count(Value value) {
  const auto count = whole(value);
  if (!count || *count <= most_divisions) return count;
  fail(value, fmt::format("{} divisions are more than PyTorch can multiply by 512 in 64 bits; it "
                          "takes up to {}",
                          *count, most_divisions));
  return std::nullopt;
}

std::optional<Bytes> ConfReader::at_least_large_segment(Value value) {
  const auto count = whole(value);
  if (!count) return std::nullopt;
  const Bytes least = conf_.settings.large_segment;
  if (mebibytes(*count) >= least) return mebibytes(*count);
  fail(value, fmt::format("'{}' must be at least {}, the size of a large segment", key_,
                          least.count() >> 20));
  return std::nullopt;
}

void ConfReader::fail(Value at, std::string message, std::string hint) {
  fail(at.front().begin, at.back().end, std::move(message), std::move(hint));
}

void ConfReader::fail(std::size_t begin, std::size_t end, std::string message, std::string hint) {
  Diagnostic mistake;
  mistake.message = std::move(message);
  mistake.hint = std::move(hint);
  mistake.span = {source_, 1, static_cast<int>(begin) + 1, static_cast<int>(end - begin)};
  mistakes_.push_back(std::move(mistake));
}

}  // namespace

Result<AllocConf> parse_alloc_conf(std::string_view text, std::string name) {
  return ConfReader(text, std::move(name)).read();
}

}  // namespace stowage
