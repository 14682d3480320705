// --lora, --base, --checkpoint, --layer-dtype and --packing, as a user types them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

Outcome checked_llama(const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "check", "llama-3-8b", "--gpu",       "rtx4090", "--batch", "1",
      "--seq", "2048",       "--precision", "bf16",    "--lora",  "r=16,targets=q_proj+v_proj"};
  words.insert(words.end(), more.begin(), more.end());
  return stowage_program(words);
}

}  // namespace

TEST_CASE("a Llama of 8 billion parameters fits a card of 24 GB beside adapters") {
  const Outcome whole = checked_llama({"--checkpoint", "--format", "json"});
  CHECK(whole.exit_code == 0);
  const Outcome quantised = checked_llama({"--checkpoint", "all", "--base", "nf4"});
  CHECK(quantised.exit_code == 0);
  CHECK(quantised.err ==
        "note: 224 linear layers in nf4, their maxima in 8 bits\n"
        "note: adapters on 64 layers: 6815744 of 8037076992 parameters are trained (0.0848 "
        "percent)\n"
        "note: checkpointed: 32 blocks, layers.0 to layers.31\n");
}

TEST_CASE("a paged optimizer's state is told apart from what the device must have") {
  const auto checked = [](const std::string& memory) {
    const Outcome outcome =
        stowage_program({"check", "gpt2", "--gpu-memory", memory, "--batch", "1", "--seq", "128",
                         "--optimizer", "paged_adamw_32bit", "--format", "json"});
    CHECK(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  const json roomy = checked("8GiB"), tight = checked("2GiB");
  const auto managed = roomy["managed_bytes"].get<std::int64_t>();
  CHECK(managed > 8 * 123'000'000);  // two moments of 4 bytes
  CHECK(roomy["evicted_bytes"] == 0);
  CHECK(tight["managed_bytes"] == managed);
  CHECK(tight["evicted_bytes"].get<std::int64_t>() ==
        managed - tight["headroom_bytes"].get<std::int64_t>());
  const Outcome table = stowage_program({"check", "gpt2", "--gpu-memory", "2GiB", "--batch", "1",
                                         "--seq", "128", "--optimizer", "paged_adamw_32bit"});
  CHECK(table.out.find("with eviction: of the paged state") != std::string::npos);
  CHECK(table.out.find("Unified memory: ") != std::string::npos);
}

TEST_CASE("an option whose value may be left out takes the next word where that is its value") {
  const auto blocks = [](const std::vector<std::string>& words) {
    std::vector<std::string> all{"check", "--gpu-memory", "8GiB", "--batch", "1", "--seq", "8"};
    all.insert(all.end(), words.begin(), words.end());
    return stowage_program(all).err;
  };
  const std::string every = "note: checkpointed: 12 blocks, h.0 to h.11\n";
  CHECK(blocks({"--checkpoint", "gpt2"}).find(every) != std::string::npos);
  CHECK(blocks({"gpt2", "--checkpoint"}).find(every) != std::string::npos);
  CHECK(blocks({"gpt2", "--checkpoint=every=6"}).find("2 blocks, h.0 to h.6") != std::string::npos);
  CHECK(blocks({"--checkpoint", "every=6", "gpt2"}).find("2 blocks, h.0 to h.6") !=
        std::string::npos);
}

TEST_CASE("what is wrong with a fine-tune is an error of the command line") {
  const auto refusal = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"check", "gpt2", "--gpu", "rtx3090"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK(refusal({"--lora", "r=8"}) ==
        "<command line>: error: --lora: 'targets' is missing\n"
        "  say which layers get adapters: targets=q_proj+v_proj, or targets=all-linear\n");
  CHECK(refusal({"--lora", "targets=c_attm"}) ==
        "error: no layer of 'gpt2' is called 'c_attm'\n  did you mean 'c_attn'?\n");
  CHECK(refusal({"--lora", "targets=c_attn,use_dor=true"}) ==
        "<command line>: error: --lora: unknown setting 'use_dor'\n  did you mean 'use_dora'?\n");
  CHECK(refusal({"--base", "nf4"})
            .find("a base in nf4 is not trained itself\n"
                  "  give --lora r=16,alpha=32,targets=all-linear, or use --mode inference") !=
        std::string::npos);
  CHECK(refusal({"--layer-dtype", "lm_head"}) ==
        "<command line>: error: --layer-dtype: 'lm_head' takes fp32, bf16, fp16 or fp64, not "
        "nothing\n");
  CHECK(refusal({"--checkpoint", "every=0"}) ==
        "<command line>: error: --checkpoint: 'every' takes a whole number of at least 1, not "
        "'0'\n");
  CHECK(refusal({"--packing"}).find("'packing'") != std::string::npos);
}

TEST_CASE("plans of fine-tunes run on the host, and their description still lowers to them") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", R"(model: small
inputs: {x: {shape: [batch, 6, 16]}, t: {shape: [batch, 6, 16]}}
blocks:
  block:
    layers:
      - layer_norm: {name: norm}
      - linear: {name: up, features: 24}
      - relu: {name: act}
      - linear: {name: down, features: 16}
      - add: {from: [input, down]}
layers:
  - block: {name: layers, from: x, repeat: 3}
  - linear: {name: head, features: 16}
loss: {mse: {from: [head, t]}}
)");
  for (const std::string base : {"nf4", "int8", "fp8", "nf4 with DoRA", "int8 with DoRA"}) {
    CAPTURE(base);
    const bool decomposed = base.find(' ') != std::string::npos;
    const std::string lora =
        decomposed ? "r=2,use_dora,dropout=0.1,targets=all-linear" : "r=2,targets=all-linear";
    const std::string plan = folder.path("plan.yaml");
    const Outcome made =
        stowage_program({"plan", model, "--batch", "4", "--budget", "80%", "--lora", lora, "--base",
                         base.substr(0, base.find(' ')), "--checkpoint", "--precision", "bf16",
                         "--validate", "-o", plan});
    CHECK(made.exit_code == 0);
    CHECK(made.out.find("host run passed") != std::string::npos);
    const Outcome checked = stowage_program({"validate", plan, "--model-only", "--source"});
    CHECK(checked.exit_code == 0);
    CHECK(checked.out.find("lowers to the plan's step") != std::string::npos);
  }
}

TEST_CASE("what training scripts do to save memory saves it in the order of its size") {
  const auto checked_gpt2 = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"check",   "gpt2", "--gpu",    "a100-sxm4-80gb",
                                   "--batch", "4",    "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  const auto tensors = [](const json& report) {
    return report["peak"]["tensor_bytes"].get<std::int64_t>();
  };
  const json whole = checked_gpt2({}), eager = checked_gpt2({"--chunked-loss", "8"}),
             compiled = checked_gpt2({"--chunked-loss", "8,compiled"});
  CHECK(tensors(eager) < tensors(whole));
  CHECK(tensors(compiled) < tensors(eager));
  const json four = checked_gpt2({"--chunked-loss", "4"});
  CHECK(tensors(four) != tensors(eager));
  CHECK(tensors(four) < tensors(whole));
  CHECK(four == checked_gpt2({"--chunked-loss=4"}));
  const json moved = checked_gpt2({"--chunked-loss", "8,compiled", "--offload-activations"});
  CHECK(tensors(moved) < tensors(compiled));
  // What leaves the card arrives on the host.
  CHECK(moved["host_bytes"].get<std::int64_t>() - compiled["host_bytes"].get<std::int64_t>() >
        tensors(compiled) - tensors(moved));
  // Of a short sequence the update is the peak, where all gradients are.
  CHECK(tensors(checked_gpt2({"--seq", "32", "--optimizer-in-backward"})) <
        tensors(checked_gpt2({"--seq", "32"})));
}

TEST_CASE("what training scripts do to save memory is refused where there is nothing to save") {
  const auto gpt2_refusal = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"check", "gpt2", "--gpu", "a100-sxm4-80gb"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(gpt2_refusal({"--chunked-loss", "8", "--mode", "inference"}) ==
        "<command line>: error: an inference has no use for a loss in chunks\n");
  CHECK(gpt2_refusal({"--chunked-loss", "0"}) == gpt2_refusal({"--chunked-loss=0"}));
  CHECK(gpt2_refusal({"--optimizer-in-backward", "--accumulation", "2"}) ==
        "<command line>: error: an optimizer in backward steps at each micro-batch: it does not "
        "accumulate\n");
}

TEST_CASE("packed sequences give attention a mask") {
  const auto peak = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"check",    "llama-3.2-1b", "--gpu", "h100-80gb",   "--batch",
                                   "8",        "--seq",        "1024",  "--precision", "bf16",
                                   "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(stowage_program(words).out)["peak"]["tensor_bytes"].get<std::int64_t>();
  };
  CHECK(peak({"--packing"}) > peak({}));
}

}  // namespace stowage
