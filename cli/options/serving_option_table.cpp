#include "cli/options/serving_option_table.hpp"

namespace stowage {

std::vector<OptionSpec> serving_options() {
  using enum OptionType;
  using enum OptionGroup;
  constexpr double most = 1e9;
  return {{.name = "of",
           .type = choice,
           .group = training,
           .value = "WHAT",
           .help = "what is looked for: the largest batch, users of a cache, its context length, "
                   "or sequence length at --at-batch",
           .default_note = "batch",
           .choices = {"batch", "users", "context-length", "seq"}},
          {.name = "at-batch",
           .type = integer,
           .group = training,
           .value = "N",
           .help = "with --of seq: samples per step",
           .default_note = "1",
           .unit = "samples",
           .minimum = 1,
           .maximum = most},
          {.name = "context-length",
           .type = integer,
           .group = training,
           .value = "N",
           .help = "serving: tokens that each user's cache of keys and values has room for; of an "
                   "encoder-decoder the decoder's, whose encoder has --seq positions",
           .default_note = "no cache",
           .unit = "tokens",
           .minimum = 1,
           .maximum = most},
          {.name = "users",
           .type = integer,
           .group = training,
           .value = "N",
           .help = "serving: users whose contexts are cached at once",
           .default_note = "1",
           .minimum = 1,
           .maximum = most},
          {.name = "kv-dtype",
           .type = choice,
           .group = training,
           .value = "NAME",
           .help = "serving: what a paged cache stores, fp8 and int8 with a scale a layer; or a "
                   "quantized one: int4 or int2 as quanto packs them, or fp8",
           .default_note = "auto: as the model computes keys and values; quantized: int4",
           .choices = {"auto", "fp8", "bf16", "fp16", "fp32", "int8", "int4", "int2"},
           .synonyms = {{"fp8_e4m3", "fp8"},
                        {"fp8_e5m2", "fp8"},
                        {"bfloat16", "bf16"},
                        {"float16", "fp16"},
                        {"half", "fp16"},
                        {"float32", "fp32"}}},
          {.name = "cache",
           .type = choice,
           .group = training,
           .value = "KIND",
           .help = "serving: blocks as vLLM has them, or transformers' DynamicCache, StaticCache "
                   "or QuantizedCache",
           .default_note = "paged; of an encoder-decoder dynamic; of int4, int2 quantized",
           .choices = {"paged", "dynamic", "static", "quantized"},
           .synonyms = {{"quantised", "quantized"}, {"quanto", "quantized"}}},
          {.name = "kv-block",
           .type = integer,
           .group = training,
           .value = "N",
           .help = "serving: tokens of a paged cache's block",
           .default_note = "16",
           .unit = "tokens",
           .minimum = 1,
           .maximum = 65536},
          {.name = "prefill-chunk",
           .type = integer,
           .group = training,
           .value = "N",
           .help = "serving: tokens of prompts that a step takes: paged, of all users together "
                   "(max_num_batched_tokens); else of each user (prefill_chunk_size)",
           .default_note = "paged: vLLM's 8192 from 70 GiB on but on an A100, else 2048; else "
                           "prompts at once",
           .unit = "tokens",
           .minimum = 1,
           .maximum = most}};
}

}  // namespace stowage
