// `quantization_config`: what is read of it, what is refused, and where. The tensors that follow
// are in quantised_layouts_test.cpp.
#include <doctest/doctest.h>

#include "estimator/model/checkpoint_formats.hpp"
#include "tests/estimator/huggingface/described_config.hpp"

namespace stowage {

namespace {

Result<ImportedModel> read_quantised(const std::string& quantization, const std::string& more = {},
                                     const ImportOptions& options = {}) {
  return testing::imported_text(R"({"model_type": "llama", "torch_dtype": "bfloat16", )" + more +
                                    "\"quantization_config\": " + quantization + "}",
                                options);
}

std::string refusal_of_quantised(const std::string& quantization) {
  const auto imported = read_quantised(quantization);
  return imported ? "read" : render(imported.error());
}

std::string notes_of_quantised(const std::string& quantization, const std::string& version) {
  const auto imported =
      read_quantised(quantization, "\"transformers_version\": \"" + version + "\", ");
  return imported ? render(imported->notes) : render(imported.error());
}

BaseSettings first_base(const std::string& quantization) {
  const auto imported = read_quantised(quantization);
  REQUIRE_MESSAGE(imported.has_value(), (imported ? "" : render(imported.error())));
  REQUIRE(imported->stored != nullptr);
  return imported->stored->groups.front().base;
}

}  // namespace

TEST_CASE("each method's configuration is read as its layout") {
  const auto words = [](const std::string& text) { return to_string(first_base(text)); };
  CHECK(words(R"({"quant_method": "gptq", "bits": 8, "group_size": -1})") ==
        "GPTQ, 8 bits, a scale a row");
  CHECK(words(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "version": "GEMV"})") ==
        "AWQ gemv, 4 bits, groups of 64");
  CHECK(words(R"({"quant_method": "fp8"})") == "fp8, blocks of 128 x 128");
  CHECK(words(R"({"quant_method": "fp8", "weight_block_size": null})") == "fp8, one scale");
  CHECK(words(R"({"quant_method": "fbgemm_fp8"})") == "fp8, a scale a row");
  CHECK(words(R"({"load_in_8bit": true})") == "int8");
  CHECK(words(R"({"load_in_4bit": true})") == "fp4");
  CHECK(words(R"({"quant_method": "bitsandbytes", "_load_in_4bit": true,
                  "bnb_4bit_quant_type": "nf4"})") == "nf4");
  CHECK(words(R"({"quant_method": "torchao", "quant_type": "int4_weight_only",
                  "quant_type_kwargs": {"group_size": 64}})") ==
        "torchao's int4, 4 bits, groups of 64");
  CHECK(words(R"({"quant_method": "torchao", "quant_type": {"default": {"_type":
                  "Int4WeightOnlyConfig", "_data": {"group_size": 32}}}})") ==
        "torchao's int4, 4 bits, groups of 32");
}

TEST_CASE("double quantisation is that of the file") {
  const std::string nf4 = R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4")";
  CHECK_FALSE(first_base(nf4 + "}").double_quantised);
  CHECK(first_base(nf4 + R"(, "bnb_4bit_use_double_quant": true})").double_quantised);
}

TEST_CASE("methods and layouts that are not sized are refused at their places") {
  CHECK(refusal_of_quantised(R"({"quant_method": "hqq", "nbits": 4})") ==
        "config.json:1:92: error: the method 'hqq': weights that are quantised in this way are not "
        "sized\n"
        "  {\"model_type\": \"llama\", \"torch_dtype\": \"bfloat16\", \"quantization_config\": "
        "{\"quant_method\": \"hqq\", \"nbits\": 4}}\n"
        "                                                                                          "
        "   ^~~~~\n"
        "  gptq, awq, fp8, fbgemm_fp8, compressed-tensors, bitsandbytes, torchao are sized\n");
  const auto first_line = [](const std::string& text) {
    const std::string refusal = refusal_of_quantised(text);
    return refusal.substr(0, refusal.find('\n'));
  };
  CHECK(first_line(R"({"bits": 4})").ends_with("'quantization_config' states no quant_method"));
  CHECK(
      first_line(R"({"quant_method": "mxfp4"})")
          .ends_with("'mxfp4' is for the experts of gpt-oss alone, and 'llama' has none of them"));
  CHECK(first_line(R"({"quant_method": "gptq", "bits": 5})")
            .ends_with("GPTQ of 5 bits: weights that are quantised in this way are not sized"));
  CHECK(first_line(R"({"quant_method": "gptq"})")
            .ends_with("'quantization_config.bits' must be an integer, and there is none"));
  CHECK(
      first_line(R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"})")
          .ends_with(
              "GPTQ in the format 'marlin': weights that are quantised in this way are not sized"));
  CHECK(first_line(R"({"quant_method": "awq", "bits": 4, "version": "exllama"})")
            .ends_with("AWQ in the version 'exllama': weights that are quantised in this way are "
                       "not sized"));
  CHECK(
      first_line(R"({"quant_method": "fp8", "weight_block_size": [128]})")
          .ends_with(
              "fp8 in blocks of 1 numbers: weights that are quantised in this way are not sized"));
  CHECK(first_line(R"({"quant_method": "compressed-tensors", "format": "marlin-24",
                       "config_groups": {}})")
            .ends_with("compressed-tensors in the format 'marlin-24': weights that are quantised "
                       "in this way are not "
                       "sized"));
  CHECK(first_line(R"({"quant_method": "gptq", "bits": 4,
                       "modules_in_block_to_quantize": [["q_proj"], [{}]]})")
            .ends_with("'quantization_config.modules_in_block_to_quantize' must be lists of "
                       "texts"));
  CHECK(first_line(R"({"quant_method": "bitsandbytes"})")
            .ends_with("bitsandbytes of neither 8 nor 4 bits: weights that are quantised in this "
                       "way are not sized"));
  CHECK(first_line(R"({"quant_method": "torchao", "quant_type": {"default": {"_type":
                       "Int8WeightOnlyConfig", "_data": {"granularity": {"_type": "PerGroup",
                       "_data": {"group_size": "x"}}}}}})")
            .ends_with("'quantization_config.group_size' must be an integer from -1 to 2147483648, "
                       "not 'x'"));
  CHECK(first_line(R"({"quant_method": "torchao", "quant_type": "autoquant"})")
            .ends_with(
                "torchao's 'autoquant': weights that are quantised in this way are not sized"));
  CHECK(first_line(R"({"quant_method": "fp8", "modules_to_not_convert": ["lm_(head"]})")
            .ends_with("'lm_(head' is not read as a pattern, from '(head' on"));
  CHECK(first_line("4").ends_with("'quantization_config' must be a mapping, not '4'"));
}

TEST_CASE("transformers restores compressed-tensors, and a paged cache's server does not") {
  const std::string quantization = R"({"quant_method": "compressed-tensors",
      "format": "pack-quantized", "ignore": ["lm_head"], "config_groups": {"group_0": {
      "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group",
      "group_size": 128, "symmetric": true}}}})";
  const auto restored = read_quantised(quantization);
  REQUIRE(restored);
  CHECK(restored->stored == nullptr);
  CHECK(render(restored->notes)
            .find("warning: transformers restores the weights of compressed-tensors before the "
                  "first pass: they are sized as restored\n") != std::string::npos);
  const auto packed =
      read_quantised(quantization, {}, {.seq = {}, .values = {{"attention", "paged"}}});
  REQUIRE(packed);
  REQUIRE(packed->stored != nullptr);
  CHECK(to_string(packed->stored->groups.front().base) ==
        "compressed-tensors, 4 bits, groups of 128");
}

TEST_CASE("mxfp4 is read of gpt-oss' experts, and what it depends on is said") {
  const auto read = [](const std::string& more, const ImportOptions& options = {}) {
    return testing::imported_text(
        R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32, )" + more +
            "}",
        options);
  };
  const std::string plain = R"("quantization_config": {"quant_method": "mxfp4",
      "modules_to_not_convert": ["model.layers.*.mlp.router", "lm_head"]})";
  const auto packed = read(plain);
  REQUIRE_MESSAGE(packed.has_value(), (packed ? "" : render(packed.error())));
  REQUIRE(packed->stored != nullptr);
  CHECK(to_string(packed->stored->groups.front().base) == "mxfp4, groups of 32");
  CHECK(packed->stored->kept.size() == 2);
  CHECK(packed->stored->wide_biases);
  CHECK(render(packed->notes) ==
        "note: transformers keeps the experts packed on a card of compute capability 7.5 or more, "
        "with Triton 3.4 and the package kernels, and restores bf16 elsewhere\n"
        "  `\"dequantize\": true` in its quantization_config sizes that\n"
        "note: as transformers 5.24 runs it: attention 'eager', head 'causal-lm', precision bf16 "
        "unless another is asked for\n"
        "  run it as another version of transformers does\n");
  const auto served = read(plain, {.seq = {}, .values = {{"attention", "paged"}}});
  REQUIRE(served);
  CHECK(served->stored->kept.empty());
  CHECK_FALSE(served->stored->wide_biases);
  CHECK(render(served->notes)
            .starts_with("note: vLLM's Marlin kernels, which it takes on cards of compute "
                         "capability below 9.0, pad the experts to multiples of 256 and 128 "
                         "features: 875.0 MiB more, which are not counted\n"));
  const auto restored =
      read(R"("quantization_config": {"quant_method": "mxfp4", "dequantize": true})");
  REQUIRE(restored);
  CHECK(restored->stored == nullptr);
  CHECK(render(restored->notes)
            .find("warning: transformers restores the weights of mxfp4 before the first pass: they "
                  "are sized as restored\n") != std::string::npos);
  CHECK(render(restored->notes).find("precision bf16") != std::string::npos);
  const auto half = read(R"("dtype": "float16", )" + plain);
  REQUIRE(half);
  CHECK(render(half->notes).find("precision fp16") != std::string::npos);
}

TEST_CASE("methods that pack experts in other layouts are refused for gpt-oss'") {
  for (const char* const quantization :
       {R"({"quant_method": "gptq", "bits": 4})", R"({"quant_method": "awq", "bits": 4})",
        R"({"quant_method": "fp8"})"}) {
    CAPTURE(quantization);
    const auto refused = testing::imported_text(
        std::string(R"({"model_type": "gpt_oss", "quantization_config": )") + quantization + "}");
    REQUIRE_FALSE(refused);
    const Diagnostic& error = refused.error().front();
    CHECK(error.message.starts_with("the method '"));
    CHECK(
        error.message.ends_with("' for the experts of gpt_oss: weights that are quantised in this "
                                "way are not sized"));
    CHECK(error.hint ==
          "of them mxfp4 is sized; bitsandbytes, torchao and fbgemm_fp8 leave them as "
          "they are");
  }
}

TEST_CASE("weights are in the format that what loads them takes") {
  const std::string gptq = R"({"quant_method": "gptq", "bits": 4})";
  CHECK(notes_of_quantised(gptq, "5.24").find(", precision bf16 unless another is asked for\n") !=
        std::string::npos);
  CHECK(notes_of_quantised(gptq, "4.40").find(", precision fp16 unless another is asked for\n") !=
        std::string::npos);
  CHECK(notes_of_quantised("null", "4.40")
            .find(", precision fp32 unless another is asked for, in which versions before 5 load "
                  "bf16 weights\n") != std::string::npos);
  const auto paged = read_quantised("null", "\"transformers_version\": \"4.40\", ",
                                    {.seq = {}, .values = {{"attention", "paged"}}});
  REQUIRE(paged);
  CHECK(render(paged->notes).find(", precision bf16 unless another is asked for\n") !=
        std::string::npos);
}

}  // namespace stowage
