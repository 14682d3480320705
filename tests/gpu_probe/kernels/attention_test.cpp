// Compares fused attention with its definition in double: cases that PyTorch's do not have, and
// lengths that are not multiples of a tile.
#include "gpu_probe/kernels/bodies/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "gpu_probe/kernels/rows/mask_draw.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

using I = std::int64_t;

struct AttentionSample {
  const char* name;
  I images = 1, heads = 2, key_heads = 2, queries = 5, keys = 5, features = 4, values = 4;
  bool causal = false;
  double dropout = 0;
  Sizes bias = {};  ///< empty: none
};

/// A tensor whose rows differ much, so that no sum is a small difference of large numbers.
Tensor wavy(const Sizes& shape, double phase) {
  Tensor result = unwritten(shape);
  for (std::size_t i = 0; i < result.floats.size(); ++i) {
    const auto x = static_cast<double>(i);
    result.floats[i] = static_cast<float>(1.5 * std::sin(0.37 * x * x + 1.7 * x + phase));
  }
  return result;
}

std::size_t at(I i) { return static_cast<std::size_t>(i); }

/// A call's tensors, and their expected values.
struct Attention {
  const AttentionSample& sample;
  Tensor q, k, v, dy, bias;
  std::vector<double> y, logsumexp, dq, dk, dv, dbias;

  explicit Attention(const AttentionSample& s)
      : sample(s),
        q(wavy({s.images, s.heads, s.queries, s.features}, 0)),
        k(wavy({s.images, s.key_heads, s.keys, s.features}, 1)),
        v(wavy({s.images, s.key_heads, s.keys, s.values}, 2)),
        dy(wavy({s.images, s.heads, s.queries, s.values}, 3)),
        bias(wavy(s.bias, 4)) {
    for (auto* const zeros : {&y, &dq, &dk, &dv, &dbias}) {
      const Tensor& like = zeros == &y    ? dy
                           : zeros == &dq ? q
                           : zeros == &dk ? k
                           : zeros == &dv ? v
                                          : bias;
      zeros->assign(like.floats.size(), 0);
    }
    logsumexp.assign(at(s.images * s.heads * s.queries), 0);
    for (I line = 0; line < s.images * s.heads * s.queries; ++line) work_out(line);
  }

  [[nodiscard]] Attributes attributes() const {
    return attributes_of({{"causal", sample.causal},
                          {"dropout", sample.dropout},
                          {"seed", I{7}},
                          {"scale", scale()}});
  }

 private:
  [[nodiscard]] double scale() const { return 3.0 / static_cast<double>(sample.features); }

  /// Which element of the bias belongs to a score.
  [[nodiscard]] std::size_t bias_at(I image, I head, I query, I key) const {
    const I place[] = {image, head, query, key};
    I offset = 0;
    const std::size_t lead = 4 - bias.shape.size();
    for (std::size_t axis = 0; axis < bias.shape.size(); ++axis) {
      const I own = bias.shape[axis] == 1 ? 0 : place[lead + axis];
      offset = offset * bias.shape[axis] + own;
    }
    return at(offset);
  }

  /// Adds what one row of scores contributes to all expected values: computes the row's weights,
  /// then its parts of y, dv, and of the gradients of q, k and the bias.
  void work_out(I line) {
    const AttentionSample& s = sample;
    const I query = line % s.queries, head = line / s.queries % s.heads,
            image = line / s.queries / s.heads;
    const I first_key = (image * s.key_heads + head / (s.heads / s.key_heads)) * s.keys;
    const I seen = s.causal ? std::min(query + 1, s.keys) : s.keys;
    std::vector<double> scores(at(seen)), kept(at(seen), 1);
    double total = 0;
    for (I key = 0; key < seen; ++key) {
      double sum = 0;
      for (I f = 0; f < s.features; ++f) {
        sum += double{q.floats[at(line * s.features + f)]} *
               k.floats[at((first_key + key) * s.features + f)];
      }
      scores[at(key)] = sum * scale();
      if (!s.bias.empty()) scores[at(key)] += bias.floats[bias_at(image, head, query, key)];
      total += std::exp(scores[at(key)]);
      if (s.dropout == 0) continue;
      const bool keeps = kernels::mask_draw(s.dropout, 7).keeps(line * s.keys + key);
      kept[at(key)] = keeps ? 1 / (1 - s.dropout) : 0;
    }
    logsumexp[at(line)] = std::log(total);
    double row_sum = 0;
    std::vector<double> gradients(at(seen));
    for (I key = 0; key < seen; ++key) {
      const double weight = std::exp(scores[at(key)]) / total;
      for (I f = 0; f < s.values; ++f) {
        const std::size_t of_y = at(line * s.values + f),
                          of_v = at((first_key + key) * s.values + f);
        y[of_y] += weight * kept[at(key)] * v.floats[of_v];
        dv[of_v] += weight * kept[at(key)] * dy.floats[of_y];
        gradients[at(key)] += kept[at(key)] * dy.floats[of_y] * v.floats[of_v];
      }
      row_sum += weight * gradients[at(key)];
    }
    for (I key = 0; key < seen; ++key) {
      const double of_score = std::exp(scores[at(key)]) / total * (gradients[at(key)] - row_sum);
      for (I f = 0; f < s.features; ++f) {
        const std::size_t of_q = at(line * s.features + f),
                          of_k = at((first_key + key) * s.features + f);
        dq[of_q] += scale() * of_score * k.floats[of_k];
        dk[of_k] += scale() * of_score * q.floats[of_q];
      }
      if (!s.bias.empty()) dbias[bias_at(image, head, query, key)] += of_score;
    }
  }
};

void check_near(const Tensor& actual, const std::vector<double>& expected, const char* what) {
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    apart =
        std::max(apart, std::isfinite(actual.floats[i]) ? std::abs(actual.floats[i] - expected[i])
                                                        : INFINITY);
  }
  INFO(what, ": ", apart, " apart, of ", largest);
  CHECK(apart <= 3e-6 * largest);
}

const AttentionSample samples[] = {
    {.name = "several tiles", .queries = 70, .keys = 45},
    {.name = "causal over several tiles", .queries = 67, .keys = 67, .causal = true},
    {.name = "causal with more keys", .queries = 35, .keys = 70, .causal = true},
    {.name = "causal with more queries", .queries = 70, .keys = 35, .causal = true},
    {.name = "shared keys", .heads = 6, .key_heads = 2, .queries = 33, .keys = 40, .causal = true},
    {.name = "wide heads", .queries = 3, .keys = 6, .features = 300, .values = 20},
    {.name = "wide values", .queries = 3, .keys = 6, .features = 5, .values = 270},
    {.name = "dropout", .queries = 40, .keys = 34, .dropout = 0.3},
    {.name = "one query", .queries = 1, .keys = 37},
    {.name = "one key", .queries = 4, .keys = 1},
    {.name = "whole bias", .images = 2, .queries = 35, .keys = 34, .bias = {2, 2, 35, 34}},
    {.name = "bias of heads", .images = 2, .queries = 35, .keys = 34, .bias = {1, 2, 35, 34}},
    {.name = "bias of samples", .images = 3, .queries = 35, .keys = 34, .bias = {3, 1, 1, 34}},
    {.name = "all of it",
     .images = 2,
     .heads = 4,
     .key_heads = 2,
     .queries = 37,
     .keys = 37,
     .causal = true,
     .dropout = 0.2,
     .bias = {4, 37, 37}},
};

}  // namespace

TEST_CASE("fused attention is what its formula says, and so are all its gradients") {
  for (const AttentionSample& sample : samples) {
    INFO(std::string(sample.name));
    Attention a(sample);
    Tensor y = unwritten(a.dy.shape),
           logsumexp = unwritten({sample.images, sample.heads, sample.queries});
    Tensor dq = unwritten(a.q.shape), dk = unwritten(a.k.shape), dv = unwritten(a.v.shape),
           dbias = unwritten(a.bias.shape);
    std::vector<Tensor*> reads{&a.q, &a.k, &a.v}, writes{&dq, &dk, &dv};
    const bool biased = !sample.bias.empty();
    if (biased) reads.push_back(&a.bias);
    run(Kernel::attention_forward, a.attributes(), reads, {&y, &logsumexp});
    check_near(y, a.y, "y");
    check_near(logsumexp, a.logsumexp, "logsumexp");
    Tensor alone = unwritten(a.dy.shape);
    run(Kernel::attention_forward, a.attributes(), reads, {&alone});
    CHECK(alone.floats == y.floats);
    std::vector<Tensor*> all{&a.dy, &a.q, &a.k, &a.v, &y, &logsumexp};
    if (biased) all.push_back(&a.bias);
    run(Kernel::attention_backward, a.attributes(), all, writes);
    const std::vector<float> without = dq.floats;
    if (biased) {
      writes.push_back(&dbias);
      run(Kernel::attention_backward, a.attributes(), all, writes);
      check_near(dbias, a.dbias, "dbias");
      CHECK(dq.floats == without);
    }
    check_near(dq, a.dq, "dq");
    check_near(dk, a.dk, "dk");
    check_near(dv, a.dv, "dv");
  }
}

// A row's weights do not change when the same number is added to all its scores.
TEST_CASE("a bias that is the same for all keys changes nothing and has no gradient") {
  for (const Sizes& shape : {Sizes{35, 1}, Sizes{2, 1, 1}, Sizes{1, 1}}) {
    const AttentionSample sample{.name = "", .queries = 35, .keys = 34, .causal = true};
    Attention a(sample);
    Tensor bias = wavy(shape, 4), dbias = unwritten(shape), y = unwritten(a.dy.shape),
           logsumexp = unwritten({1, 2, 35}), dq = unwritten(a.q.shape), dk = unwritten(a.k.shape),
           dv = unwritten(a.v.shape);
    REQUIRE(try_run(Kernel::attention_forward, a.attributes(), {&a.q, &a.k, &a.v, &bias},
                    {&y, &logsumexp})
                .has_value());
    check_near(y, a.y, "y");
    REQUIRE(try_run(Kernel::attention_backward, a.attributes(),
                    {&a.dy, &a.q, &a.k, &a.v, &y, &logsumexp, &bias}, {&dq, &dk, &dv, &dbias})
                .has_value());
    check_near(dq, a.dq, "dq");
    for (const float value : dbias.floats) CHECK(std::abs(value) < 2e-5);
  }
}

TEST_CASE("a query that sees nothing gets zeros, and one that meets a NaN gets it") {
  const float lowest = -std::numeric_limits<float>::infinity();
  Tensor q = wavy({1, 1, 2, 4}, 0), k = wavy({1, 1, 3, 4}, 1), v = wavy({1, 1, 3, 4}, 2);
  Tensor bias = tensor({2, 3}, {lowest, lowest, lowest, 0, lowest, 0});
  const Attributes attributes = attributes_of({});
  Tensor y = unwritten({1, 1, 2, 4}), logsumexp = unwritten({1, 1, 2});
  run(Kernel::attention_forward, attributes, {&q, &k, &v, &bias}, {&y, &logsumexp});
  CHECK(std::vector<float>(y.floats.begin(), y.floats.begin() + 4) == std::vector<float>(4, 0));
  CHECK(logsumexp.floats[0] == lowest);
  CHECK(std::isfinite(y.floats[4]));
  Tensor dq = unwritten(q.shape), dk = unwritten(k.shape), dv = unwritten(v.shape),
         dbias = unwritten(bias.shape), dy = wavy(q.shape, 3);
  run(Kernel::attention_backward, attributes, {&dy, &q, &k, &v, &y, &logsumexp, &bias},
      {&dq, &dk, &dv, &dbias});
  CHECK(std::vector<float>(dq.floats.begin(), dq.floats.begin() + 4) == std::vector<float>(4, 0));
  CHECK(std::vector<float>(dk.floats.begin() + 4, dk.floats.begin() + 8) ==
        std::vector<float>(4, 0));  // no query sees that key
  for (const Tensor* gradient : {&dq, &dk, &dv, &dbias}) {
    for (const float value : gradient->floats) CHECK(std::isfinite(value));
  }

  k.floats[9] = __builtin_nanf("");
  run(Kernel::attention_forward, attributes, {&q, &k, &v}, {&y, &logsumexp});
  for (const float value : y.floats) CHECK(std::isnan(value));
  for (const float value : logsumexp.floats) CHECK(std::isnan(value));
}

TEST_CASE("attention refuses operands that do not belong together") {
  Tensor q = wavy({1, 3, 2, 4}, 0), k = wavy({1, 2, 5, 4}, 1), y = unwritten(q.shape);
  const Attributes none;
  CHECK(refusal(Kernel::attention_forward, none, {&q, &k, &k}, {&y}) ==
        "attention_forward: query [1, 3, 2, 4], key [1, 2, 5, 4] and value [1, 2, 5, 4] do not "
        "belong together");
  Tensor fitting = wavy({1, 1, 5, 4}, 1), bias = wavy({2, 4}, 0), logsumexp = unwritten({1, 3});
  CHECK(refusal(Kernel::attention_forward, none, {&q, &fitting, &fitting, &bias}, {&y}) ==
        "attention_forward: [2, 4] does not broadcast to [1, 3, 2, 5]");
  CHECK(refusal(Kernel::attention_forward, none, {&q, &fitting, &fitting}, {&y, &logsumexp}) ==
        "attention_forward: logsumexp is [1, 3] where [1, 3, 2] is needed");
  const Attributes certain = attributes_of({{"dropout", 1.0}});
  CHECK(refusal(Kernel::attention_forward, certain, {&q, &fitting, &fitting}, {&y}) ==
        "attention_forward: the probability of dropping is 1, not in [0, 1)");
}

}  // namespace stowage::test
