#include "estimator/model/name_pattern.hpp"

#include <fmt/format.h>

namespace stowage {

namespace {

constexpr int deepest_group = 20;

std::bitset<256> range_of(unsigned char first, unsigned char last) {
  std::bitset<256> bytes;
  for (unsigned code = first; code <= last; ++code) bytes.set(code);
  return bytes;
}

/// \d, \w and \s, or the character itself.
std::bitset<256> escaped(char letter) {
  if (letter == 'd') return range_of('0', '9');
  if (letter == 's') return range_of('\t', '\r') | range_of(' ', ' ');
  if (letter == 'w') {
    return range_of('a', 'z') | range_of('A', 'Z') | range_of('0', '9') | range_of('_', '_');
  }
  const auto byte = static_cast<unsigned char>(letter);
  return range_of(byte, byte);
}

}  // namespace

/// Recursive descent over the text; each part is a fragment of states with one way in and one out.
class NamePattern::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NamePattern> run() {
    const Fragment whole = choice(0);
    if (!failed_ && at_ < text_.size()) fail();
    if (failed_) {
      return failure(
          fmt::format("'{}' is not read as a pattern, from '{}' on", text_, text_.substr(stop_)));
    }
    made_.states_[whole.out].next = add({.kind = Kind::accept});
    made_.start_ = whole.in;
    return std::move(made_);
  }

 private:
  struct Fragment {
    std::size_t in = 0, out = 0;  ///< `next` of `out` is open
  };

  std::size_t add(State state) {
    made_.states_.push_back(state);
    return made_.states_.size() - 1;
  }
  Fragment single(State state) {
    const std::size_t made = add(state);
    return {made, made};
  }
  /// A state that reads nothing: both ways lead on.
  Fragment nothing() {
    const Fragment made = single({.kind = Kind::split});
    made_.states_[made.out].other = made.out;
    return made;
  }
  void join(std::size_t out, std::size_t in) { made_.states_[out].next = in; }
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  void fail() {
    if (!failed_) stop_ = at_;
    failed_ = true;
  }

  Fragment choice(int depth) {
    if (depth > deepest_group) fail();
    if (failed_) return nothing();
    Fragment made = sequence(depth);
    while (!failed_ && !ended() && text_[at_] == '|') {
      ++at_;
      const Fragment other = sequence(depth);
      const std::size_t fork = add({.kind = Kind::split, .next = made.in, .other = other.in});
      const Fragment meet = nothing();
      join(made.out, meet.in);
      join(other.out, meet.in);
      made = {fork, meet.out};
    }
    return made;
  }

  Fragment sequence(int depth) {
    Fragment made = nothing();
    while (!failed_ && !ended() && text_[at_] != '|' && text_[at_] != ')') {
      const Fragment part = repeated(depth);
      join(made.out, part.in);
      made.out = part.out;
    }
    return made;
  }

  Fragment repeated(int depth) {
    Fragment part = atom(depth);
    while (!failed_ && !ended()) {
      const char sign = text_[at_];
      if (sign != '*' && sign != '+' && sign != '?') break;
      ++at_;
      const std::size_t fork = add({.kind = Kind::split, .next = 0, .other = part.in});
      const Fragment meet = nothing();
      join(fork, meet.in);
      join(part.out, sign == '?' ? meet.in : fork);
      part = {sign == '+' ? part.in : fork, meet.out};
      // A lazy repetition matches the same names.
      if (!ended() && text_[at_] == '?') ++at_;
    }
    return part;
  }

  Fragment atom(int depth) {
    const char letter = text_[at_];
    if (letter == '(') return group(depth);
    if (letter == '[') return list();
    if (letter == '*' || letter == '+' || letter == '?' || letter == '{' || letter == '}') {
      fail();
      return nothing();
    }
    ++at_;
    if (letter == '^') return single({.kind = Kind::begin});
    if (letter == '$') return single({.kind = Kind::end});
    if (letter == '.') return single({.kind = Kind::bytes, .bytes = ~std::bitset<256>()});
    if (letter != '\\') return single({.kind = Kind::bytes, .bytes = literal(letter)});
    return single({.kind = Kind::bytes, .bytes = escape()});
  }

  static std::bitset<256> literal(char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return range_of(byte, byte);
  }

  std::bitset<256> escape() {
    const bool letter = !ended() && ((text_[at_] >= 'a' && text_[at_] <= 'z') ||
                                     (text_[at_] >= 'A' && text_[at_] <= 'Z') ||
                                     (text_[at_] >= '0' && text_[at_] <= '9'));
    const bool known = letter && (text_[at_] == 'd' || text_[at_] == 'w' || text_[at_] == 's');
    if (ended() || (letter && !known)) {
      --at_;
      fail();
      return {};
    }
    return escaped(text_[at_++]);
  }

  Fragment group(int depth) {
    const std::size_t opened = at_++;
    if (text_.substr(at_, 2) == "?:") at_ += 2;
    const Fragment inner = !ended() && text_[at_] == '?' ? nothing() : choice(depth + 1);
    if (failed_) return inner;
    if (ended() || text_[at_] != ')') {
      at_ = opened;
      fail();
      return inner;
    }
    ++at_;
    return inner;
  }

  Fragment list() {
    const std::size_t opened = at_++;
    const bool inverted = !ended() && text_[at_] == '^';
    if (inverted) ++at_;
    std::bitset<256> bytes;
    bool closed = false;
    while (!failed_ && !ended() && !closed) {
      const char letter = text_[at_++];
      closed = letter == ']';
      if (closed) break;
      if (letter == '\\') {
        bytes |= escape();
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        bytes |= range_of(static_cast<unsigned char>(letter),
                          static_cast<unsigned char>(text_[at_ + 1]));
        at_ += 2;
      } else {
        bytes |= literal(letter);
      }
    }
    if (!closed && !failed_) {
      at_ = opened;
      fail();
    }
    return single({.kind = Kind::bytes, .bytes = inverted ? ~bytes : bytes});
  }

  std::string_view text_;
  std::size_t at_ = 0, stop_ = 0;
  bool failed_ = false;
  NamePattern made_;
};

Result<NamePattern> NamePattern::parse(std::string_view text) {
  if (text.size() > longest_name_pattern) {
    return failure(fmt::format("a pattern is longer than {} bytes", longest_name_pattern));
  }
  return Parser(text).run();
}

/// Marks what is reached from `state` without reading a byte.
void NamePattern::follow(std::size_t state, std::size_t at, std::size_t length,
                         std::vector<bool>& reached) const {
  std::vector<std::size_t> open{state};
  while (!open.empty()) {
    const std::size_t one = open.back();
    open.pop_back();
    if (reached[one]) continue;
    reached[one] = true;
    const State& found = states_[one];
    if (found.kind == Kind::split) {
      open.push_back(found.next);
      open.push_back(found.other);
    }
    const bool passes =
        (found.kind == Kind::begin && at == 0) || (found.kind == Kind::end && at == length);
    if (passes) open.push_back(found.next);
  }
}

NamePattern::Ends NamePattern::ends_of(std::string_view name) const {
  Ends ends;
  std::vector<bool> reached(states_.size());
  follow(start_, 0, name.size(), reached);
  for (std::size_t at = 0;; ++at) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!reached[i] || states_[i].kind != Kind::accept) continue;
      ends.any = true;
      const bool behind = at > 0 && name[at - 1] == '.';
      ends.at_boundary = ends.at_boundary || behind || at == name.size() || name[at] == '.';
    }
    if (at == name.size()) return ends;
    std::vector<bool> next(states_.size());
    const auto byte = static_cast<unsigned char>(name[at]);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!reached[i] || states_[i].kind != Kind::bytes || !states_[i].bytes[byte]) continue;
      follow(states_[i].next, at + 1, name.size(), next);
    }
    reached = std::move(next);
  }
}

}  // namespace stowage
