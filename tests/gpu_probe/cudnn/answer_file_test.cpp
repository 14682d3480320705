// The format of a file of answers: everything that is written is read again, and other files are
// rejected. No cuDNN is needed.
#include "gpu_probe/cudnn/answer_file.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <random>

#include "estimator/base/hash.hpp"

using namespace stowage;

namespace {

ConvolutionQuery question_of_file(std::int64_t n) {
  return {.x = {n, 64, 56, 56},
          .w = {64, 64, 3, 3},
          .y = {n, 64, 56, 56},
          .stride = {1, 1},
          .padding = {1, 1},
          .dilation = {1, 1}};
}

AnswerFile file_of(int answers) {
  AnswerFile file{
      .generation = 7, .circumstances = "a card\nwith two lines", .parts = "1 2 3 /p\n"};
  for (int n = 1; n <= answers; ++n) {
    file.answers[question_bytes(question_of_file(n))] = {
        .used = static_cast<std::uint32_t>(n),
        .engines = {{"eng0 k2=1", Bytes(n * 1'000'003LL)}, {"eng34", 0_B}, {"", 1_B}},
        .benchmark = {{"eng34", Bytes(n)}, {"eng34", Bytes(n)}}};
  }
  return file;
}

std::string in_full(const std::optional<KeptAnswer>& answer) {
  if (!answer) return "none";
  std::string text = std::to_string(answer->used);
  for (const Engine& engine : answer->engines) {
    text += " " + engine.name + "=" + std::to_string(engine.workspace.count());
  }
  for (const Engine& engine : answer->benchmark) {
    text += " or " + engine.name + "=" + std::to_string(engine.workspace.count());
  }
  return text;
}

// A body with its right hash, as an attacker would write it.
std::string with_hash(std::string_view bytes, std::string body) {
  const std::size_t hash = bytes.find('\n') + 1;
  return std::string(bytes.substr(0, hash)) + hash_text(body) + '\n' + body;
}

std::string body_of(const std::string& bytes) {
  return bytes.substr(bytes.find('\n', bytes.find('\n') + 1) + 1);
}

}  // namespace

TEST_CASE("what is written is found, and nothing else") {
  for (const int answers : {0, 1, 2, 5, 100}) {
    const AnswerFile file = file_of(answers);
    const auto view = AnswerFileView::open(encode_answers(file));
    REQUIRE(view);
    CHECK(view->circumstances() == file.circumstances);
    CHECK(view->parts() == file.parts);
    CHECK(view->all().generation == 7);
    const AnswerFile all = view->all();
    CHECK(all.answers.size() == file.answers.size());
    for (const auto& [key, answer] : file.answers) {
      CHECK(in_full(view->find(key)) == in_full(answer));
      CHECK(in_full(all.answers.at(key)) == in_full(answer));
    }
    CHECK(!view->find(question_bytes(question_of_file(answers + 1))));
    CHECK(!view->find(""));
  }
}

TEST_CASE("questions that differ anywhere have bytes that differ") {
  const ConvolutionQuery base = question_of_file(300);
  std::vector<ConvolutionQuery> others(16, base);
  others[0].direction = ConvolutionCall::Direction::backward_data;
  others[1].type = DataType::float16;
  others[2].x[0] = 44;  // the low seven bits of 300
  others[3].w[1] = 32;
  others[4].y[3] = 55;
  others[5].stride = {1, 2};
  others[6].padding = {0, 1};
  others[7].dilation = {2, 1};
  others[8].groups = 64;
  others[9].stride = {1, 1, 1};
  others[9].padding = {1};  // the same numbers, divided into other lists
  others[10].x[2] = -1;
  others[11].x[2] = std::int64_t{1} << 62;
  others[12].layout = TensorLayout::channels_last;
  others[13].settings.tf32 = false;
  others[14].settings.deterministic = true;
  others[15].settings.benchmark = true;
  for (const ConvolutionQuery& other : others) {
    CHECK(question_bytes(other) != question_bytes(base));
  }
  CHECK(question_bytes(question_of_file(300)) == question_bytes(base));
}

TEST_CASE("a file that was cut or changed anywhere is no file") {
  const std::string bytes = encode_answers(file_of(3));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CHECK(!AnswerFileView::open(bytes.substr(0, i)));
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK(!AnswerFileView::open(changed));
  }
  CHECK(!AnswerFileView::open(bytes + "x"));
  CHECK(!AnswerFileView::open(with_hash(bytes, "")));
  CHECK(!AnswerFileView::open(std::string(largest_answer_file + 1, '\0')));
  CHECK(AnswerFileView::open(with_hash(bytes, body_of(bytes))));
}

TEST_CASE("a hostile file with the right hash gives no more than it holds") {
  const AnswerFile file = file_of(6);
  const std::string bytes = encode_answers(file);
  int opened = 0;
  const bool held = rc::check("hostile", [&] {
    std::string body = body_of(bytes);
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, body.size());
      body[at] = *rc::gen::element('\0', '\1', '\x7f', '\xff', '\x80');
    }
    const auto view = AnswerFileView::open(with_hash(bytes, body));
    if (!view) return;
    ++opened;
    std::size_t engines = 0;
    for (const auto& [key, answer] : view->all().answers) {
      for (const Engine& engine : answer.engines) RC_ASSERT(engine.workspace >= 0_B);
      for (const Engine& engine : answer.benchmark) RC_ASSERT(engine.workspace >= 0_B);
      engines += answer.engines.size() + answer.benchmark.size();
    }
    RC_ASSERT(engines * 12 <= body.size());
    for (const auto& [key, answer] : file.answers) {
      if (const auto found = view->find(key)) RC_ASSERT(found->engines.size() * 12 <= body.size());
    }
  });
  CHECK(held);
  CHECK(opened > 0);
}

TEST_CASE("of too many answers those of the latest use are kept") {
  const auto view = AnswerFileView::open(encode_answers(file_of(10), 4));
  REQUIRE(view);
  CHECK(view->all().answers.size() == 4);
  for (int n = 1; n <= 10; ++n) {
    CHECK(view->find(question_bytes(question_of_file(n))).has_value() == (n > 6));
  }
}

TEST_CASE("a file never outgrows its bound") {
  AnswerFile file = file_of(20);
  for (auto& [key, answer] : file.answers) {
    answer.engines[0].name = std::string(largest_answer_file / 10, 'n') + key;
  }
  const std::string bytes = encode_answers(file);
  CHECK(bytes.size() <= largest_answer_file);
  const auto view = AnswerFileView::open(bytes);
  REQUIRE(view);
  CHECK(view->all().answers.size() == 5);
  CHECK(view->find(question_bytes(question_of_file(20))));
}
