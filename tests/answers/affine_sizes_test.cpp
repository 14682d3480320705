// Steps of many values out of a few: held against the steps of each value by itself.
#include "answers/table/affine_sizes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace stowage {

namespace {

struct SizingCalls {
  std::set<std::int64_t> values;
};

constexpr std::int64_t cache_block = 16, cache_window = 4096, most_tokens = 300'000;

std::int64_t blocks_in(std::int64_t value) { return (value + cache_block - 1) / cache_block; }

/// Storages whose bytes are `bytes`, by name; a step without kernels.
SizedStep step_with(const std::vector<std::pair<std::string, std::int64_t>>& bytes) {
  auto graph = std::make_shared<StepGraph>();
  SizedStep step{.graph = graph, .batch = 1};
  for (const auto& [name, count] : bytes) {
    graph->storages.push_back({.name = name, .bytes = Affine(count)});
    step.storage_bytes.emplace_back(count);
  }
  return step;
}

/// As a cache's: blocks of tokens, a table of blocks, keys by the token, a window.
Result<std::shared_ptr<const SizedSteps>> exactly(std::int64_t value) {
  if (value > most_tokens) return failure("too long");
  const SizedStep step = step_with({{"cache", 4096 * cache_block * blocks_in(value)},
                                    {"table", 4 * blocks_in(value)},
                                    {"keys", 128 * value},
                                    {"window", 64 * std::min(value, cache_window)}});
  return std::make_shared<const SizedSteps>(SizedSteps{{step, step_with({{"tokens", 8}})}});
}

SizedAt noting(SizingCalls& calls,
               Result<std::shared_ptr<const SizedSteps>> (*sizes)(std::int64_t)) {
  return [&calls, sizes](std::int64_t value) {
    calls.values.insert(value);
    return sizes(value);
  };
}

}  // namespace

TEST_SUITE_BEGIN("affine sizes");

TEST_CASE("sizes between values are those of the values themselves, with a kink among them") {
  SizingCalls calls;
  const SizedAt sizes = affine_sizes(noting(calls, exactly), cache_block, {2});
  std::size_t asked = 0;
  const auto check_value = [&](std::int64_t value) {
    INFO("value ", value);
    const auto got = sizes(value);
    const auto wanted = exactly(value);
    REQUIRE(got.has_value() == wanted.has_value());
    ++asked;
    if (!wanted) return;
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK((*got)->steps[i].storage_bytes == (*wanted)->steps[i].storage_bytes);
      CHECK((*got)->steps[i].batch == (*wanted)->steps[i].batch);
    }
  };
  check_value(1);
  for (std::int64_t value = 3; value < 65'536; value += 1 + value / 200) check_value(value);
  check_value(most_tokens);
  check_value(most_tokens + 1);
  for (std::int64_t value = cache_window - 40; value < cache_window + 40; ++value) {
    check_value(value);
  }
  const auto within =
      std::ranges::count_if(calls.values, [](std::int64_t value) { return value <= most_tokens; });
  CHECK(asked > 1000);
  CHECK(within < 200);
}

TEST_CASE("sizes that are not affine are asked for value by value") {
  SizingCalls calls;
  const auto squares = [](std::int64_t value) -> Result<std::shared_ptr<const SizedSteps>> {
    if (value > most_tokens) return failure("too long");
    return std::make_shared<const SizedSteps>(
        SizedSteps{{step_with({{"scores", 4 * value * value}})}});
  };
  const SizedAt sizes = affine_sizes(noting(calls, squares), 1, {});
  CHECK(sizes(1));
  for (std::int64_t value = 1; value < 65'536; value += 1 + value / 10) {
    CHECK((*sizes(value))->steps[0].storage_bytes[0] == Bytes(4 * value * value));
  }
  CHECK_FALSE(sizes(most_tokens + 1));
}

TEST_CASE("values of a block that take the same have one step") {
  const auto by_block = [](std::int64_t value) -> Result<std::shared_ptr<const SizedSteps>> {
    return std::make_shared<const SizedSteps>(
        SizedSteps{{step_with({{"cache", 512 * blocks_in(value)}})}});
  };
  SizingCalls calls;
  const SizedAt sizes = affine_sizes(noting(calls, by_block), cache_block, {});
  CHECK(sizes(1));
  CHECK(*sizes(1001) == *sizes(1008));
  CHECK(*sizes(1008) != *sizes(1009));
  CHECK(calls.values.size() < 8);
}

TEST_SUITE_END();

}  // namespace stowage
