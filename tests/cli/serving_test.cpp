// Serving as a user runs it: check --context-length, batch --of.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

json served(std::vector<std::string> words) {
  words.insert(words.begin(), {"check"});
  words.insert(words.end(), {"--format", "json", "--no-cache"});
  const Outcome outcome = stowage_program(words);
  INFO(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return json::parse(outcome.out);
}

std::string refusal(const std::vector<std::string>& words) {
  const Outcome outcome = stowage_program(words);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return outcome.err;
}

constexpr std::int64_t gib = std::int64_t{1} << 30;

}  // namespace

TEST_SUITE_BEGIN("serving");

TEST_CASE("32 users of 8192 tokens of llama-3-8b in bf16 are 32 GiB of cache, exactly") {
  // 2 (keys, values) x 32 layers x 8 heads x 128 features x 2 bytes: 128 KiB a token.
  const json report =
      served({"llama-3-8b", "--mode", "inference", "--precision", "bf16", "--context-length",
              "8192", "--users", "32", "--gpu", "h100-pcie-80gb"});
  CHECK(report["fits"] == true);
  CHECK(report["serving"]["kv_cache_bytes"] == 32 * gib);
  CHECK(report["decode"]["footprint"]["kv_cache"] == 32 * gib);
  CHECK(report["prefill"]["footprint"]["kv_cache"] == 32 * gib);
  CHECK(report["prefill"]["sequences"] == 1);
  CHECK(report["prefill"]["tokens_of_each"] == 8192);
}

TEST_CASE("a config.json is served as the description of the same model, whose loss stays out") {
  const auto bytes = [](const std::string& model) {
    return served({model, "--precision", "bf16", "--context-length", "512", "--users", "2", "--gpu",
                   "h100-pcie-80gb"})["serving"]["kv_cache_bytes"];
  };
  CHECK(bytes(testing::source_path("/tests/hf/llama-3-8b/config.json")) == bytes("llama-3-8b"));
}

TEST_CASE("fp8 halves a paged cache, but for its scales; blocks round each user up") {
  const std::vector<std::string> command{"llama-3.2-1b", "--precision", "bf16", "--gpu",
                                         "rtx3090",      "--users",     "4",    "--context-length",
                                         "1000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return served(more)["serving"]["kv_cache_bytes"].get<std::int64_t>();
  };
  // 16 layers, 8 key heads of 64 features; 1000 tokens are 63 blocks of 16.
  const std::int64_t of_a_token = std::int64_t{2} * 16 * 8 * 64 * 2;
  CHECK(with({}) == of_a_token * 4 * 1008);
  CHECK(with({"--kv-block", "256"}) == of_a_token * 4 * 1024);
  const std::int64_t scales = std::int64_t{16} * 2 * 512;  // as PyTorch's allocator rounds them
  CHECK(with({"--kv-dtype", "fp8"}) == of_a_token * 4 * 1008 / 2 + scales);
  CHECK(with({"--kv-dtype", "fp32"}) == of_a_token * 4 * 1008 * 2);
}

TEST_CASE("a sliding window caches no more tokens than it sees") {
  const auto bytes = [](const char* context) {
    return served({"mistral-7b", "--precision", "bf16", "--gpu", "a100-80gb", "--context-length",
                   context})["serving"]["kv_cache_bytes"]
        .get<std::int64_t>();
  };
  CHECK(bytes("4096") == bytes("32768"));
  CHECK(bytes("2048") == bytes("4096") / 2);
}

TEST_CASE("a config.json's window is cached as the description's, whatever attention it states") {
  const auto bytes = [](const std::string& model) {
    return served({model, "--precision", "bf16", "--gpu", "a100-80gb", "--context-length",
                   "32768"})["serving"]["kv_cache_bytes"]
        .get<std::int64_t>();
  };
  // The file states transformers 4.34, which had no fused attention for Mistral.
  CHECK(bytes(testing::source_path("/tests/hf/mistral-7b-v0.1")) == bytes("mistral-7b"));
}

TEST_CASE("eager attention takes its scores beside the cache, which is the same") {
  const auto decode = [](const char* attention) {
    return served({testing::source_path("/tests/hf/llama-3-8b"), "--precision", "bf16", "--gpu",
                   "h100-pcie-80gb", "--context-length", "4096", "--users", "4", "--cache",
                   "dynamic", "--set", std::string("attention=") + attention});
  };
  const json eager = decode("eager"), fused = decode("sdpa");
  CHECK(eager["prefill"]["footprint"]["kv_cache"] == fused["prefill"]["footprint"]["kv_cache"]);
  // The scores of 32 heads, and twice as much for the softmax in float32, are 4 GiB and 16 GiB.
  const auto tensors = [](const json& report) {
    return report["prefill"]["peak"]["tensor_bytes"].get<std::int64_t>();
  };
  CHECK(tensors(eager) > tensors(fused) + 16 * gib);
}

TEST_CASE("what has no cache is refused with its place") {
  CHECK(refusal({"check", "resnet50", "--gpu", "rtx3090", "--context-length", "128"}) ==
        "error: model 'resnet50' has no symbol 'seq', so that its context has no length\n");
  const std::string bert =
      refusal({"check", "bert-base", "--gpu", "rtx3090", "--context-length", "128"});
  CHECK(bert.find("error: the attention '") != std::string::npos);
  CHECK(bert.find("is not causal: it sees later tokens too, so that keys and values cannot be kept "
                  "from token to token\n") != std::string::npos);
  const std::string lstm =
      refusal({"check", "lstm-lm", "--gpu", "rtx3090", "--context-length", "128"});
  CHECK(lstm.find("may carry a state from token to token") != std::string::npos);
  const std::string long_context =
      refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "2000"});
  CHECK(long_context.find("gpt2.yaml:") != std::string::npos);
}

TEST_CASE("whisper-small caches 448 tokens of its decoder and 1500 of its encoder, exactly") {
  const json report = served({"whisper-small", "--precision", "bf16", "--context-length", "448",
                              "--users", "16", "--gpu", "rtx3060"});
  // 2 (keys, values) x 12 layers x 768 features x 2 bytes: 36 KiB a position.
  CHECK(report["serving"]["cache"] == "dynamic");
  CHECK(report["serving"]["encoder_length"] == 1500);
  CHECK(report["prefill"]["footprint"]["kv_cache"] == std::int64_t{16} * 36864 * (1500 + 1));
  // Of the last layer the keys or the values before this token are let go of after the peak.
  const std::int64_t last = std::int64_t{16} * 768 * 2 * 447;
  CHECK(report["decode"]["footprint"]["kv_cache"] ==
        std::int64_t{16} * 36864 * (1500 + 448) + last);
}

TEST_CASE("--seq is the length of the encoder behind which a decoder is served") {
  const auto bytes = [](const char* encoded) {
    return served({"t5-small", "--context-length", "64", "--seq", encoded, "--users", "8", "--gpu",
                   "rtx3060"})["prefill"]["footprint"]["kv_cache"]
        .get<std::int64_t>();
  };
  // 2 x 6 layers x 8 heads x 64 features x 4 bytes: 24 KiB a position.
  CHECK(bytes("512") == 8 * 24576 * (512 + 1));
  CHECK(bytes("100") == 8 * 24576 * (100 + 1));
}

TEST_CASE("an encoder-decoder with eager attention holds its scores, and caches the same") {
  // bart-base's config.json states a transformers whose attention is eager.
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {testing::source_path("/tests/hf/bart-base"), "--gpu", "rtx3060",
                               "--context-length", "64", "--users", "4"});
    return served(more);
  };
  const json eager = with({}), fused = with({"--set", "attention=sdpa"});
  CHECK(eager["decode"]["footprint"]["kv_cache"] == fused["decode"]["footprint"]["kv_cache"]);
  CHECK(eager["prefill"]["peak"]["tensor_bytes"] > fused["prefill"]["peak"]["tensor_bytes"]);
}

TEST_CASE("what is not served of an encoder-decoder is refused") {
  const auto refused = [](const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), {"check", model, "--gpu", "rtx3060", "--context-length", "64"});
    return refusal(more);
  };
  CHECK(refused("t5-small", {"--cache", "paged"}) ==
        "error: 't5-small' is an encoder-decoder, which a paged cache does not serve: what a "
        "server allocates for it is not known\n"
        "  transformers' generate() serves it with a dynamic or a static cache\n");
  CHECK(refused("t5-small", {"--prefill-chunk", "16"}) ==
        "error: 't5-small' is an encoder-decoder, whose encoder takes its input at once, not in "
        "chunks\n");
  CHECK(refused("whisper-small", {"--seq", "512"}) ==
        "error: the encoder of 'whisper-small' always has 1500 positions, and 512 are asked for\n");
  CHECK(refused("t5-small", {"--kv-dtype", "fp8"}) ==
        "<command line>: error: an encoder-decoder's cache keeps keys and values as the model "
        "computes them, and not as fp8\n");
  const std::string long_decoder =
      refusal({"check", "whisper-small", "--gpu", "rtx3060", "--context-length", "449"});
  CHECK(long_decoder.find("a length of 449 is more than the 448 positions there are") !=
        std::string::npos);
  const std::string masked = refused("t5-small", {"--cache", "static"});
  CHECK(masked.find("error: the attention 'decoder.0.self_attention.attended' has a mask or a bias "
                    "of its own") != std::string::npos);
  CHECK(masked.find("\n  --cache dynamic grows by each token, and has no such mask\n") !=
        std::string::npos);
  const std::string eager =
      refusal({"check", testing::source_path("/tests/hf/t5-small"), "--set", "attention=eager",
               "--gpu", "rtx3060", "--context-length", "64"});
  CHECK(eager.find("has it with --set attention=sdpa\n") != std::string::npos);
  const std::string packed = refused("t5-small", {"--cache", "quantized"});
  CHECK(packed.find("'t5-small' is an encoder-decoder, for which generate() has no quantised "
                    "cache\n  --cache dynamic without --kv-dtype ") != std::string::npos);
}

TEST_CASE("options of serving that contradict each other are refused") {
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--users", "8"}) ==
        "<command line>: error: --users is of serving, which needs --context-length\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--seq", "64"}) ==
        "<command line>: error: --seq and --context-length cannot be combined\n"
        "  the context's length takes the place of the sequence's\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--cache", "static",
                 "--kv-dtype", "fp8"}) ==
        "<command line>: error: transformers' static cache keeps keys and values as the model "
        "computes them, and --kv-dtype is fp8\n"
        "  --cache paged stores other formats, --cache quantized int4, int2 and fp8\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--cache",
                 "quantized", "--kv-dtype", "int8"}) ==
        "<command line>: error: transformers' quantised cache stores int4, int2 or fp8, and "
        "--kv-dtype is int8\n"
        "  int4 and int2 are quanto's; what HQQ stores, which also has 8, 3 and 1 bits, is not "
        "sized\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--cache", "paged",
                 "--kv-dtype", "int4"}) ==
        "<command line>: error: a paged cache stores no int4\n"
        "  --cache quantized does, as transformers and quanto pack it\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--kv-dtype",
                 "int2", "--prefill-chunk", "16"}) ==
        "<command line>: error: a quantised cache takes prompts at once: leave out "
        "--prefill-chunk\n");
  CHECK(refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--runtime",
                 "stowage"}) ==
        "<command line>: error: --runtime stowage serves no cache of keys and values\n"
        "  --runtime pytorch does\n");
  CHECK(
      refusal({"check", "gpt2", "--gpu", "rtx3090", "--context-length", "64", "--mode", "train"}) ==
      "<command line>: error: --context-length is of inference, and --mode asks for training\n");
  CHECK(refusal({"batch", "gpt2", "--gpu", "rtx3090", "--of", "users"}) ==
        "<command line>: error: --of users is of serving, which needs --context-length\n");
  CHECK(refusal({"batch", "gpt2", "--gpu", "rtx3090", "--of", "seq", "--seq", "8"}) ==
        "<command line>: error: --seq is what stowage batch looks for\n  stowage check takes it\n");
}

TEST_CASE("the largest number of users fits, and one more does not") {
  const std::vector<std::string> model{"llama-3.2-1b", "--precision",      "bf16", "--gpu",
                                       "rtx3060",      "--context-length", "4096"};
  std::vector<std::string> search = model;
  search.insert(search.begin(), {"batch", "--of", "users", "--format", "json"});
  const json found = json::parse(stowage_program(search).out);
  const std::int64_t largest = found["largest"];
  REQUIRE(largest > 1);
  const auto fits = [&](std::int64_t users) {
    std::vector<std::string> words = model;
    words.insert(words.end(), {"--users", std::to_string(users)});
    return served(words)["fits"].get<bool>();
  };
  CHECK(fits(largest));
  CHECK_FALSE(fits(largest + 1));
  CHECK(fits(found["recommended"].get<std::int64_t>()));
}

TEST_CASE(
    "before transformers 5.23 a static cache's shared heads are repeated, a layer at a time") {
  const auto decode = [](const char* cache, const char* version) {
    return served({testing::source_path("/tests/hf/llama-3.2-1b/config.json"), "--mode",
                   "inference", "--context-length", "2048", "--users", "8", "--cache", cache,
                   "--set", std::string("transformers=") + version, "--precision", "bf16", "--gpu",
                   "h200"})["decode"]["peak"]["tensor_bytes"]
        .get<std::int64_t>();
  };
  // Keys and values of 8 users, 32 heads, 2048 tokens and 64 features of 2 bytes; what else lives
  // at the peak is another layer's.
  constexpr std::int64_t repeated = std::int64_t{2} * 8 * 32 * 2048 * 64 * 2, others = 2 << 20;
  const std::int64_t more = decode("static", "5.22") - decode("static", "5.23");
  CHECK(more <= repeated);
  CHECK(more >= repeated - others);
  CHECK(decode("dynamic", "5.22") == decode("dynamic", "5.23"));
}

TEST_CASE("the most users of a quantised cache fit, and one more does not") {
  const std::vector<std::string> model{"llama-3.2-1b", "--precision", "bf16",
                                       "--gpu",        "rtx3060",     "--context-length",
                                       "2048",         "--kv-dtype",  "int4"};
  std::vector<std::string> search = model;
  search.insert(search.begin(), {"batch", "--of", "users", "--format", "json"});
  const json found = json::parse(stowage_program(search).out);
  const std::int64_t largest = found["largest"];
  REQUIRE(largest > 1);
  const auto of_users = [&](std::int64_t users) {
    std::vector<std::string> words = model;
    words.insert(words.end(), {"--users", std::to_string(users)});
    return served(words);
  };
  CHECK(of_users(largest)["fits"] == true);
  CHECK(of_users(largest + 1)["fits"] == false);
  CHECK(of_users(1)["serving"]["cache"] == "quantized");
  CHECK(of_users(1)["serving"]["device_bytes"] <= of_users(2)["serving"]["device_bytes"]);
}

TEST_CASE("the longest context ends where the model's positions do") {
  const Outcome outcome = stowage_program(
      {"batch", "gpt2", "--of", "context-length", "--users", "2", "--gpu", "rtx3060"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("the largest context length that fits is 1,024, ") != std::string::npos);
  CHECK(outcome.out.find("\n  the model takes no 1,025: ") != std::string::npos);
  CHECK(outcome.out.find("\nuse --context-length 1024: ") != std::string::npos);
}

TEST_CASE("the longest sequence of a training step is found as the largest batch is") {
  const auto fits = [](std::int64_t seq) {
    return stowage_program({"check", "llama-3.2-1b", "--precision", "bf16", "--optimizer", "sgd",
                            "--gpu", "rtx3090", "--seq", std::to_string(seq)})
               .exit_code == 0;
  };
  const json found =
      json::parse(stowage_program({"batch", "llama-3.2-1b", "--precision", "bf16", "--optimizer",
                                   "sgd", "--of", "seq", "--gpu", "rtx3090", "--format", "json"})
                      .out);
  const std::int64_t largest = found["largest"];
  REQUIRE(largest > 1);
  CHECK(fits(largest));
  CHECK_FALSE(fits(largest + 1));
}

TEST_SUITE_END();

}  // namespace stowage
