// What llama.cpp's own parser makes of a command line, as JSON. Built by build_llama_parser.sh from
// llama.cpp's source, of which it needs common/.
//
//   llama_arguments -ngl 33 -c 8192 ...     exit code 1 with the parser's message: it does not take
//   it
#include <cstdio>

#include "arg.h"
#include "common.h"
#include "ggml-backend.h"

int main(int argc, char** argv) {
  common_params params;
  params.model.path = "model.gguf";  // none is read
  if (!common_params_parse(argc, argv, params, LLAMA_EXAMPLE_SERVER)) return 1;
  std::printf(
      "{\"layers\": %d, \"context\": %d, \"users\": %d, \"batch\": %d, \"micro_batch\": %d,\n",
      params.n_gpu_layers, params.n_ctx, params.n_parallel, params.n_batch, params.n_ubatch);
  std::printf(" \"cache_k\": \"%s\", \"cache_v\": \"%s\", \"cache_on_host\": %s, \"flash\": %s,\n",
              ggml_type_name(params.cache_type_k), ggml_type_name(params.cache_type_v),
              params.no_kv_offload ? "true" : "false",
              params.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_ENABLED ? "true" : "false");
  std::printf(" \"overrides\": [");
  const char* between = "";
  for (const llama_model_tensor_buft_override& one : params.tensor_buft_overrides) {
    if (one.pattern == nullptr) continue;
    std::printf("%s[\"", between);
    for (const char* c = one.pattern; *c != '\0'; ++c) {
      std::printf(*c == '\\' || *c == '"' ? "\\%c" : "%c", *c);
    }
    std::printf("\", \"%s\"]", ggml_backend_buft_name(one.buft));
    between = ", ";
  }
  std::printf("]}\n");
  return 0;
}
