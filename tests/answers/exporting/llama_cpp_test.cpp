// llama.cpp's options: how much of a served model has room on the GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>

#include "tests/answers/exporting/export_questions.hpp"

namespace stowage {

namespace {

using testing::exported_body;
using testing::small_llama;

ExportQuestion served(const std::string& model, Bytes card) {
  ExportQuestion question = small_llama(ExportForm::llama_cpp);
  question.step.model.source = model;
  question.step.model.options = {.precision = Precision::bf16};
  question.card = CardQuestion{.cuda_total = card, .configs = question.card->configs};
  question.batch.reset();
  question.serving = ServingSettings{.context_length = 4096, .cache_is_default = true};
  return question;
}

Verdict verdict_of(const ExportQuestion& question) {
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  return found->verdict().value();
}

/// The number behind an option in the file; -1: it is not there.
std::int64_t option(const ExportQuestion& question, const std::string& name) {
  const std::string body = exported_body(question);
  const std::size_t at = body.find("  -" + name + ' ');
  return at == std::string::npos ? -1 : std::stoll(body.substr(at + name.size() + 4));
}

}  // namespace

TEST_CASE("llama.cpp: a model that fits lies on the GPU whole") {
  CHECK(exported_body(served("llama-3-8b", 40_GiB)) ==
        R"(LLAMA_ARGS=(
  -ngl 33
  -c 4096
  -np 1
  -b 2048
  -ub 2048
  --cache-type-k bf16
  --cache-type-v bf16
  -fa on
  -fit off
)
)");
}

TEST_CASE("llama.cpp: blocks from the end lie on the GPU, as many as fit") {
  const ExportQuestion question = served("llama-3-8b", 8_GiB);
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  const std::int64_t layers = option(question, "ngl");
  CHECK(layers > 1);
  CHECK(layers < 33);
  const Verdict verdict = *found->verdict();
  CHECK(verdict.fits);
  // A block of Llama 3 8B has 218,112,000 parameters and 16 MiB of this cache: one more has no
  // room.
  const Bytes block = Bytes(std::int64_t{218'112'000} * 2) + 16_MiB;
  CHECK(verdict.headroom_bytes < block);
  // On the GPU: all that is counted, but for the other blocks and the embedding.
  const Bytes whole = std::get<ServingAnswer>(found->sizes).larger().report.device_bytes;
  const Bytes embedding{std::int64_t{128'256} * 4096 * 2};
  CHECK(whole - verdict.device_bytes == Bytes(block.count() * (33 - layers)) + embedding);
  CHECK(found->remarks[0] == fmt::format("on the GPU: {} of 32 blocks and the output layer; on the "
                                         "host: the token embedding (1002.0 MiB)",
                                         layers - 1));
}

TEST_CASE("llama.cpp: experts go to the host before whole blocks do") {
  ExportQuestion question = served("mixtral-8x7b", 40_GiB);
  const std::string body = exported_body(question);
  CHECK(option(question, "ngl") == 33);
  const std::int64_t experts = option(question, "-n-cpu-moe");
  CHECK(experts > 0);
  CHECK(experts < 32);
  CHECK(verdict_of(question).fits);
  question.card->cuda_total = 3_GiB;  // all experts on the host, and some blocks as well
  CHECK(option(question, "ngl") < 33);
  CHECK(option(question, "-n-cpu-moe") == 32);
}

TEST_CASE("llama.cpp: what has no room even without blocks does not fit") {
  ExportQuestion question = served("llama-3-8b", 500_MiB);
  CHECK(option(question, "ngl") == 0);
  const Verdict verdict = verdict_of(question);
  CHECK_FALSE(verdict.fits);
  CHECK(verdict.headroom_bytes < Bytes());
}

TEST_CASE("llama.cpp: users, a cache of 8 bits and prompts in chunks") {
  ExportQuestion question = served("llama-3-8b", 40_GiB);
  question.serving->users = 4;
  question.serving->format = CacheFormat::int8;
  question.serving->prefill_chunk = 512;
  CHECK(exported_body(question) ==
        R"(LLAMA_ARGS=(
  -ngl 33
  -c 16384
  -np 4
  -b 512
  -ub 512
  --cache-type-k q8_0
  --cache-type-v q8_0
  -fa on
  -fit off
)
)");
}

TEST_CASE("llama.cpp: what it does not store or serve is refused") {
  ExportQuestion fp8 = served("llama-3-8b", 40_GiB);
  fp8.serving->format = CacheFormat::fp8;
  CHECK(exported_body(fp8) ==
        "<question>: error: `kv_dtype` fp8: llama.cpp stores no such cache\n"
        "  `kv_dtype` int8 is its q8_0, int4 its q4_0\n");
  ExportQuestion encoder = served("t5-small", 40_GiB);
  encoder.serving->context_length = 64;
  encoder.step.model.options.precision = Precision::fp32;
  CHECK(exported_body(encoder) ==
        "<question>: error: an encoder-decoder is not exported to llama.cpp\n");
  ExportQuestion training = served("llama-3-8b", 40_GiB);
  training.form = ExportForm::trl;
  CHECK(exported_body(training) ==
        "<question>: error: `context_length` is of serving, and TRL's settings are of training\n"
        "  `to` llama.cpp serves\n");
}

}  // namespace stowage
