// Configurations with a quantization_config, as a user types them.
#include <doctest/doctest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

/// Qwen1.5-7B-Chat's sizes with Qwen2.5's heads, in GPTQ of 8 bits.
std::string quantised_qwen(const std::string& quantization) {
  return R"({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584, "intermediate_size": 18944,
"max_position_embeddings": 131072, "model_type": "qwen2", "num_attention_heads": 28,
"num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": false,
"torch_dtype": "bfloat16", "transformers_version": "4.37.2", "vocab_size": 152064,
"quantization_config": )" +
         quantization + "}";
}

constexpr const char* gptq8 = R"({"quant_method": "gptq", "bits": 8, "group_size": 128})";

std::vector<std::string> on_a_4090(const std::string& file, const std::vector<std::string>& more) {
  std::vector<std::string> words{"check", file, "--gpu", "rtx4090"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const std::string gptq8_note =
    "note: as its quantization_config says: 196 linear layers in GPTQ, 8 bits, groups of 128 "
    "(qweight, qzeros, scales, g_idx); not quantised: lm_head; 8.3 GiB of weights and their tables "
    "in all\n";

}  // namespace

TEST_CASE("a GPTQ model of 7 billion weights is served from 8.3 GiB of them") {
  const TemporaryFolder folder;
  const std::string file = folder.file("qwen.json", quantised_qwen(gptq8));
  const Outcome served =
      stowage_program(on_a_4090(file, {"--mode", "inference", "--context-length", "4096"}));
  CHECK(served.exit_code == 0);
  CHECK(served.err ==
        "note: the network of transformers 4.37, which the file states: a server's own attention, "
        "head 'causal-lm', precision bf16 unless another is asked for\n"
        "  --set transformers=VERSION runs it as another version does\n" +
            gptq8_note);
  CHECK(served.out.find("  8,302.6 MiB  parameter\n    150.2 MiB  buffer\n") != std::string::npos);
  CHECK(served.out.find("fits: 9.2 GiB of the 23.6 GiB") != std::string::npos);
}

TEST_CASE("of a quantised output, too, a server computes the last position's logits alone") {
  const TemporaryFolder folder;
  const auto served = [&folder](const char* quantization) {
    const std::string file = folder.file("qwen.json", quantised_qwen(quantization));
    return json::parse(stowage_program(on_a_4090(file, {"--mode", "inference", "--context-length",
                                                        "4096", "--format", "json"}))
                           .out);
  };
  const json plain = served(gptq8);
  const json whole =
      served(R"({"quant_method": "gptq", "bits": 8, "group_size": 128, "lm_head": true})");
  const auto bytes = [](const json& answer, const char* pass) {
    return answer.at(pass).at("peak").at("tensor_bytes").get<std::int64_t>();
  };
  CHECK(bytes(whole, "decode") < bytes(plain, "decode"));
  CHECK(bytes(whole, "prefill") - bytes(whole, "decode") ==
        bytes(plain, "prefill") - bytes(plain, "decode"));
}

TEST_CASE("adapters are trained beside a quantised checkpoint, and it is not trained itself") {
  const TemporaryFolder folder;
  const std::string file = folder.file("qwen.json", quantised_qwen(gptq8));
  const Outcome whole = stowage_program(on_a_4090(file, {}));
  CHECK(whole.exit_code == 2);
  CHECK(whole.err ==
        "<command line>: error: a base in GPTQ, 8 bits, groups of 128 is not trained itself\n"
        "  give --lora r=16,alpha=32,targets=all-linear, or use --mode inference\n");
  const Outcome adapted =
      stowage_program(on_a_4090(file, {"--lora", "r=8,targets=q_proj", "--seq", "512"}));
  CHECK(adapted.exit_code == 0);
  CHECK(adapted.err ==
        "note: as transformers 4.37 runs it, which the file states: attention 'sdpa', head "
        "'causal-lm', precision fp16 unless another is asked for\n"
        "  --set transformers=VERSION runs it as another version does\n" +
            gptq8_note +
            "note: adapters on 28 layers: 1605632 of 7617222144 parameters are trained (0.0211 "
            "percent)\n");
}

TEST_CASE("gpt-oss-20b is served within 16 GB from 12.8 GiB of weights") {
  const std::string file = testing::source_path("/tests/hf/gpt-oss-20b/config.json");
  const Outcome served = stowage_program(
      {"check", file, "--mode", "inference", "--context-length", "4096", "--gpu", "rtx4080"});
  CHECK(served.exit_code == 0);
  CHECK(served.err ==
        "note: vLLM's Marlin kernels, which it takes on cards of compute capability below 9.0, pad "
        "the experts to multiples of 256 and 128 features: 875.0 MiB more, which are not counted\n"
        "note: the network of transformers 4.55, which the file states: a server's own attention "
        "where there is a paged cache, head 'causal-lm', precision bf16 unless another is asked "
        "for\n"
        "  --set transformers=VERSION runs it as another version does\n"
        "note: as its quantization_config says: the experts in mxfp4, groups of 32 (weight_packed, "
        "weight_scale); not quantised: q_proj, k_proj, v_proj and 3 others; 12.8 GiB of weights "
        "and their tables in all\n");
  CHECK(served.out.find("  12.26 GiB  parameter\n   0.55 GiB  buffer\n") != std::string::npos);
  CHECK(
      served.out.ends_with("fits: 13.6 GiB of the 15.6 GiB that GeForce RTX 4080 has available, "
                           "2.0 GiB to spare\n"));
}

TEST_CASE("mxfp4 is not trained, nor are adapters beside it") {
  const std::string file = testing::source_path("/tests/hf/gpt-oss-20b/config.json");
  const Outcome whole = stowage_program(on_a_4090(file, {}));
  CHECK(whole.exit_code == 2);
  CHECK(
      whole.err ==
      "<command line>: error: transformers trains no base in mxfp4, groups of 32\n"
      "  \"dequantize\": true in its quantization_config restores it, or give --base nf4 and give "
      "--lora r=16,alpha=32,targets=all-linear, or use --mode inference\n");
  const Outcome adapted = stowage_program(on_a_4090(file, {"--lora", "targets=q_proj"}));
  CHECK(adapted.exit_code == 2);
  CHECK(adapted.err ==
        "<command line>: error: transformers trains no adapters beside mxfp4, groups of 32\n"
        "  \"dequantize\": true in its quantization_config restores it, or give --base nf4, or use "
        "--mode inference\n");
  const Outcome instead = stowage_program({"check", file, "--gpu", "h200", "--seq", "256", "--base",
                                           "nf4", "--lora", "r=16,alpha=32,targets=all-linear"});
  CHECK(instead.exit_code == 0);
}

TEST_CASE("adapters are refused beside a checkpoint that transformers does not train") {
  const TemporaryFolder folder;
  const std::string file =
      folder.file("qwen.json", quantised_qwen(R"({"quant_method": "fbgemm_fp8"})"));
  const Outcome refused = stowage_program(on_a_4090(file, {"--lora", "targets=q_proj"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "<command line>: error: transformers trains no adapters beside fp8, a scale a row\n"
        "  give --base nf4, or use --mode inference\n");
}

TEST_CASE("a base that is asked for takes the place of the file's") {
  const TemporaryFolder folder;
  const std::string file = folder.file("qwen.json", quantised_qwen(gptq8));
  const Outcome outcome =
      stowage_program(on_a_4090(file, {"--mode", "inference", "--base", "awq", "--seq", "64"}));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.ends_with(
      "note: 196 linear layers in AWQ, 4 bits, groups of 128 (qweight, qzeros, scales)\n"
      "note: the file's weights are quantised (gptq); they are sized as if they were not, and then "
      "as asked for\n"));
}

TEST_CASE("a layout that is not sized is an error with its place") {
  const TemporaryFolder folder;
  const std::string file =
      folder.file("qwen.json", quantised_qwen(R"({"quant_method": "aqlm", "in_group_size": 8})"));
  const Outcome outcome = stowage_program(on_a_4090(file, {"--mode", "inference"}));
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(
      outcome.err ==
      file +
          ":5:41: error: the method 'aqlm': weights that are quantised in this way are not sized\n"
          "  \"quantization_config\": {\"quant_method\": \"aqlm\", "
          "\"in_group_size\": 8}}\n"
          "                                          ^~~~~~\n"
          "  gptq, awq, fp8, fbgemm_fp8, compressed-tensors, bitsandbytes, torchao are "
          "sized\n");
}

TEST_CASE("quantised checkpoints are compared in a table in their own layouts") {
  const TemporaryFolder folder;
  const std::string gptq = folder.file("gptq.json", quantised_qwen(gptq8));
  const std::string plain = folder.file("plain.json", quantised_qwen("null"));
  const Outcome outcome =
      stowage_program({"check", gptq, plain, "--gpu", "rtx4090", "--mode", "inference", "--batch",
                       "1", "--seq", "64", "--precision", "bf16", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json rows = json::parse(outcome.out)["rows"];
  REQUIRE(rows.size() == 2);
  const auto bytes = [&](std::size_t i) { return rows[i]["needed_bytes"].get<std::int64_t>(); };
  CHECK(bytes(1) - bytes(0) > std::int64_t{5} << 30);
}

}  // namespace stowage
