// Both passes of serving as one step.
#include "estimator/serving/served_round.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "estimator/serving/serving_passes.hpp"
#include "tests/estimator/serving/served_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

struct Lowered {
  std::shared_ptr<const StepGraph> prefill, decode;
  std::int64_t prefill_batch = 1, decode_batch = 1;
};

/// Of a small Llama, with the cache of three users.
Lowered lowered_passes(const std::string& cache, const std::string& config = "small-llama") {
  std::ifstream file(testing::source_path("/tests/hf/" + config + "/config.json"));
  const nlohmann::json row{{"config", nlohmann::json::parse(file)},
                           {"precision", "bf16"},
                           {"context_length", 64},
                           {"users", 3},
                           {"cache", cache}};
  const auto passes = testing::passes_of_config(row, cache == "paged" ? "paged" : "sdpa");
  REQUIRE_MESSAGE(passes, (passes ? "" : render(passes.error())));
  const LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  return {testing::lowered(passes->prefill.model, settings),
          testing::lowered(passes->decode.model, settings), passes->prefill.batch,
          passes->decode.batch};
}

Result<StepGraph> round_of(const Lowered& passes) {
  return served_round({*passes.prefill, passes.prefill_batch},
                      {*passes.decode, passes.decode_batch});
}

std::int64_t bytes_of_class(const StepGraph& graph, StorageClass storage_class,
                            std::int64_t batch) {
  std::int64_t bytes = 0;
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class == storage_class) bytes += storage.bytes.at(batch);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a round has both passes' nodes, and one between them that takes the next tokens") {
  for (const char* cache : {"paged", "static"}) {
    CAPTURE(cache);
    const Lowered passes = lowered_passes(cache);
    const auto round = round_of(passes);
    REQUIRE_MESSAGE(round, (round ? "" : render(round.error())));
    const std::size_t first = passes.prefill->nodes.size();
    REQUIRE(round->nodes.size() == first + 1 + passes.decode->nodes.size());
    for (std::size_t i = 0; i < first; ++i) {
      CHECK(round->nodes[i].name == "prefill:" + passes.prefill->nodes[i].name);
    }
    for (std::size_t i = first + 1; i < round->nodes.size(); ++i) {
      CHECK(round->nodes[i].name == "decode:" + passes.decode->nodes[i - first - 1].name);
    }
    const KernelNode& tokens = round->nodes[first];
    CHECK(tokens.name == "decode:next_tokens");
    // Decode waits for prefill: its tokens come from prefill's result.
    REQUIRE(tokens.reads.size() == 1);
    REQUIRE(tokens.writes.size() == 1);
    CHECK(round->storage(tokens.reads[0].storage).name.starts_with("prefill:"));
    CHECK(round->storage(tokens.writes[0].storage).persistence == Persistence::transient);
    const auto reads_tokens = [&](const KernelNode& node) {
      return std::ranges::any_of(node.reads, [&](const TensorView& view) {
        return view.storage == tokens.writes[0].storage;
      });
    };
    CHECK(std::ranges::any_of(round->nodes, reads_tokens));
  }
}

TEST_CASE("what lasts is there once, and no size depends on a batch") {
  for (const char* cache : {"paged", "static"}) {
    CAPTURE(cache);
    const Lowered passes = lowered_passes(cache);
    const auto round = round_of(passes);
    REQUIRE(round);
    for (const StorageClass lasting : {StorageClass::parameter, StorageClass::kv_cache}) {
      const std::int64_t of_decode = bytes_of_class(*passes.decode, lasting, passes.decode_batch);
      CHECK(of_decode > 0);
      CHECK(bytes_of_class(*round, lasting, 1) == of_decode);
    }
    const std::int64_t activations =
        bytes_of_class(*passes.prefill, StorageClass::activation, passes.prefill_batch) +
        bytes_of_class(*passes.decode, StorageClass::activation, passes.decode_batch);
    const std::int64_t tokens = 3LL * 8;  // the users' next ones, which are no input any more
    CHECK(bytes_of_class(*round, StorageClass::activation, 1) == activations + tokens);
    std::set<std::string> names;
    for (const Storage& storage : round->storages) {
      CHECK(storage.bytes.is_constant());
      CHECK(names.insert(storage.name).second);
    }
    std::set<std::string> layers;
    for (const Origin& origin : round->origins) CHECK(layers.insert(origin.layer).second);
  }
}

TEST_CASE("a cache changes in the tokens that are new, and keeps the rest") {
  for (const char* cache : {"paged", "static"}) {
    CAPTURE(cache);
    const Lowered passes = lowered_passes(cache);
    int writers = 0;
    for (const KernelNode& node : passes.decode->nodes) {
      for (const TensorView& view : node.writes) {
        if (passes.decode->storage(view.storage).storage_class != StorageClass::kv_cache) continue;
        ++writers;
        // One token of each user, read and written in place.
        CHECK(view.shape[2] == Affine(1));
        CHECK(std::ranges::count(node.reads, view) == 1);
      }
    }
    CHECK(writers > 0);
  }
}

TEST_CASE("a cache that grows by copies has no place in both passes") {
  const auto round = round_of(lowered_passes("dynamic"));
  REQUIRE(!round);
  CHECK(round.error().front().message.starts_with("each step makes its cache '"));
}

TEST_CASE("passes of different models are refused") {
  Lowered passes = lowered_passes("paged");
  passes.decode = lowered_passes("paged", "small-qwen2").decode;
  const auto round = round_of(passes);
  REQUIRE(!round);
  CHECK(round.error().front().message == "the passes have different parameters");
}

}  // namespace stowage
