// A file of cuDNN's answers. Its hash is made right, so that what it guards is reached: a file that
// someone has made has a right hash as well.
#include <algorithm>
#include <vector>

#include "estimator/base/hash.hpp"
#include "gpu_probe/cudnn/answer_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

namespace {

bool alike(const std::vector<Engine>& some, const std::vector<Engine>& others) {
  return std::ranges::equal(some, others, [](const Engine& a, const Engine& b) {
    return a.name == b.name && a.workspace == b.workspace;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t hash_length = 32;
  const std::string_view opening = "stowage cuDNN answers 2\n";
  std::string bytes(fuzz::text_of(data, size));
  const std::size_t body = opening.size() + hash_length + 1;
  if (bytes.size() > body && bytes.starts_with(opening)) {
    bytes.replace(opening.size(), hash_length, hash_text(std::string_view(bytes).substr(body)));
  }
  const auto view = AnswerFileView::open(bytes);
  if (!view) return 0;
  const AnswerFile all = view->all();
  for (const auto& [question, answer] : all.answers) (void)view->find(question);
  // What is written again is whole, and of it everything is found.
  const auto again = AnswerFileView::open(encode_answers(all));
  fuzz::require(again.has_value());
  for (const auto& [question, answer] : again->all().answers) {
    const auto found = again->find(question);
    fuzz::require(found.has_value() && alike(found->engines, answer.engines));
  }
  return 0;
}
