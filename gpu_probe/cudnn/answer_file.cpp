#include "gpu_probe/cudnn/answer_file.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "estimator/base/hash.hpp"

namespace stowage {

namespace {

constexpr std::string_view file_head = "stowage cuDNN answers 2\n";
constexpr std::size_t hash_length = 32;
constexpr std::size_t body_begin = file_head.size() + hash_length + 1;

void put_number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_u32(std::string& to, std::size_t value) { put_number(to, value, 4); }

void put_text(std::string& to, std::string_view text) {
  put_u32(to, text.size());
  to += text;
}

void put_table(std::string& to, const std::vector<std::string>& elements) {
  put_u32(to, elements.size());
  std::size_t end = 0;
  for (const std::string& element : elements) put_u32(to, end += element.size());
  put_u32(to, end);
  for (const std::string& element : elements) to += element;
}

// A number of varying length: seven bits a byte, the lowest first. The eighth bit says that more
// bytes follow.
void put_varint(std::string& to, std::int64_t number) {
  auto value = static_cast<std::uint64_t>(number);
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(0x80 | (value & 0x7f));
  to += static_cast<char>(value);
}

std::uint64_t number_at(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// The engines' names, each once: a name stands in thousands of answers.
class NameTable {
 public:
  std::size_t number(const std::string& name) {
    const auto [found, fresh] = numbers_.emplace(name, all_.size());
    if (fresh) all_.push_back(name);
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> all_;
};

void put_engines(std::string& to, const std::vector<Engine>& engines, NameTable& names) {
  put_u32(to, engines.size());
  for (const Engine& engine : engines) {
    put_u32(to, names.number(engine.name));
    put_number(to, static_cast<std::uint64_t>(engine.workspace.count()), 8);
  }
}

std::string file_bytes(const AnswerFile& file) {
  NameTable names;
  std::vector<std::string> answers;
  for (const auto& [question, answer] : file.answers) {
    std::string& element = answers.emplace_back();
    put_text(element, question);
    put_u32(element, answer.used);
    put_engines(element, answer.engines, names);
    put_engines(element, answer.benchmark, names);
  }
  std::string body;
  put_u32(body, file.generation);
  put_text(body, file.circumstances);
  put_text(body, file.parts);
  put_table(body, names.all());
  put_table(body, answers);
  return std::string(file_head) + hash_text(body) + '\n' + body;
}

// Keeps at most `most` answers. Those whose last use is oldest are dropped first; of equal ones,
// the last by question.
void keep_most(AnswerFile& file, std::size_t most) {
  if (file.answers.size() <= most) return;
  std::vector<std::pair<std::uint32_t, const std::string*>> order;
  for (const auto& [question, answer] : file.answers) order.emplace_back(answer.used, &question);
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& one) { return one.first; });
  std::vector<std::string> dropped;
  for (std::size_t i = most; i < order.size(); ++i) dropped.push_back(*order[i].second);
  for (const std::string& question : dropped) file.answers.erase(question);
}

}  // namespace

std::string question_bytes(const ConvolutionQuery& query) {
  // Names all fields of the query, so that this fails to compile when one is added.
  const auto& [direction, type, x, w, y, stride, padding, dilation, groups, layout, settings] =
      query;
  const auto& [tf32, deterministic, benchmark] = settings;
  std::string bytes;
  put_varint(bytes, static_cast<std::int64_t>(direction));
  put_varint(bytes, static_cast<std::int64_t>(type));
  for (const auto* list : {&x, &w, &y, &stride, &padding, &dilation}) {
    put_varint(bytes, static_cast<std::int64_t>(list->size()));
    for (const std::int64_t number : *list) put_varint(bytes, number);
  }
  put_varint(bytes, groups);
  put_varint(bytes, static_cast<std::int64_t>(layout));
  for (const bool setting : {tf32, deterministic, benchmark}) put_varint(bytes, setting ? 1 : 0);
  return bytes;
}

std::string question_bytes(const AttentionQuery& query) {
  const auto& [direction, type, q, k, v, output, gradient, bias, causal, statistics, dropout] =
      query;
  constexpr std::int64_t after_convolutions = 16;  // above every direction of a convolution
  std::string bytes;
  put_varint(bytes, after_convolutions + static_cast<std::int64_t>(direction));
  put_varint(bytes, static_cast<std::int64_t>(type));
  for (const auto* operand : {&q, &k, &v, &output, &gradient, &bias}) {
    for (const auto* list : {&operand->shape, &operand->strides}) {
      put_varint(bytes, static_cast<std::int64_t>(list->size()));
      for (const std::int64_t number : *list) put_varint(bytes, number);
    }
  }
  for (const bool setting : {causal, statistics}) put_varint(bytes, setting ? 1 : 0);
  put_varint(bytes, std::bit_cast<std::int64_t>(dropout));
  return bytes;
}

std::string encode_answers(AnswerFile file, std::size_t most) {
  keep_most(file, most);
  std::string bytes = file_bytes(file);
  while (bytes.size() > largest_answer_file && !file.answers.empty()) {
    keep_most(file, file.answers.size() / 2);
    bytes = file_bytes(file);
  }
  return bytes;
}

// Reads the file from front to back. Once a part is missing, sound() is false and everything after
// it reads as empty.
class AnswerFileView::Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  std::string_view bytes(std::size_t count) {
    if (!sound_ || count > rest_.size()) {
      sound_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(std::size_t size) { return number_at(bytes(size)); }
  std::size_t u32() { return number(4); }
  std::string_view text() { return bytes(u32()); }
  Table table() {
    Table table;
    table.ends = bytes(u32() * 4);
    table.elements = bytes(u32());
    return table;
  }
  [[nodiscard]] bool sound() const { return sound_; }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool sound_ = true;
};

std::string_view AnswerFileView::Table::at(std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : number_at(ends.substr(4 * (i - 1), 4));
  const std::size_t end = number_at(ends.substr(4 * i, 4));
  if (begin > end || end > elements.size()) return {};
  return elements.substr(begin, end - begin);
}

std::optional<AnswerFileView> AnswerFileView::open(std::string bytes) {
  if (bytes.size() > largest_answer_file || bytes.size() < body_begin ||
      !bytes.starts_with(file_head)) {
    return std::nullopt;
  }
  AnswerFileView view;
  view.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view all = *view.bytes_;
  const std::string_view body = all.substr(body_begin);
  if (all.substr(file_head.size(), hash_length + 1) != hash_text(body) + '\n') return std::nullopt;
  Cursor cursor(body);
  view.generation_ = static_cast<std::uint32_t>(cursor.u32());
  view.circumstances_ = cursor.text();
  view.parts_ = cursor.text();
  view.names_ = cursor.table();
  view.answers_ = cursor.table();
  if (!cursor.sound() || cursor.left() > 0) return std::nullopt;
  return view;
}

bool AnswerFileView::take_engines(Cursor& cursor, std::vector<Engine>& engines) const {
  constexpr std::size_t engine_size = 12;
  const std::size_t count = cursor.u32();
  if (!cursor.sound() || cursor.left() < count * engine_size) return false;
  engines.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t name = cursor.u32();
    const std::uint64_t workspace = cursor.number(8);
    if (name >= names_.size() || workspace > std::numeric_limits<std::int64_t>::max()) return false;
    engines.push_back({std::string(names_.at(name)), Bytes(static_cast<std::int64_t>(workspace))});
  }
  return true;
}

std::optional<KeptAnswer> AnswerFileView::answer(Cursor cursor) const {
  KeptAnswer answer;
  answer.used = static_cast<std::uint32_t>(cursor.u32());
  const bool whole = take_engines(cursor, answer.engines) &&
                     take_engines(cursor, answer.benchmark) && cursor.left() == 0;
  return whole ? std::optional(std::move(answer)) : std::nullopt;
}

std::optional<KeptAnswer> AnswerFileView::find(std::string_view question) const {
  std::size_t begin = 0;
  std::size_t end = answers_.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    Cursor cursor(answers_.at(middle));
    const std::string_view here = cursor.text();
    if (here == question) return answer(cursor);
    (here < question ? begin : end) = here < question ? middle + 1 : middle;
  }
  return std::nullopt;
}

AnswerFile AnswerFileView::all() const {
  AnswerFile file{.generation = generation_,
                  .circumstances = std::string(circumstances_),
                  .parts = std::string(parts_)};
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Cursor cursor(answers_.at(i));
    const std::string_view question = cursor.text();
    if (auto kept = answer(cursor)) file.answers.emplace(question, std::move(*kept));
  }
  return file;
}

}  // namespace stowage
