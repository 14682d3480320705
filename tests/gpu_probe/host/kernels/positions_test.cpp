// Compares tables of positions with T5Attention._relative_position_bucket and LlamaRotaryEmbedding
// of transformers (5.23).
#include <doctest/doctest.h>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

TEST_CASE("distances fall into T5's buckets") {
  Tensor buckets = integer_tensor({3, 5}, std::vector<std::int64_t>(15, -1));
  run(Kernel::relative_buckets,
      attributes_of({{"buckets", std::int64_t{8}}, {"max_distance", std::int64_t{4}}}), {},
      {&buckets});
  CHECK(buckets.integers == std::vector<std::int64_t>{0, 5, 6, 7, 7, 1, 0, 5, 6, 7, 2, 1, 0, 5, 6});
  Tensor past = integer_tensor({5, 3}, std::vector<std::int64_t>(15, -1));
  run(Kernel::relative_buckets,
      attributes_of({{"buckets", std::int64_t{4}},
                     {"max_distance", std::int64_t{5}},
                     {"bidirectional", false}}),
      {}, {&past});
  CHECK(past.integers == std::vector<std::int64_t>{0, 0, 0, 1, 0, 0, 2, 1, 0, 2, 2, 1, 3, 2, 2});
}

TEST_CASE("rotary tables turn each pair of features slower than the one before") {
  Tensor cos = tensor({3, 4}, std::vector<float>(12)), sin = cos;
  run(Kernel::rotary_table, attributes_of({{"base", 10000.0}}), {}, {&cos, &sin});
  const std::vector<float> expected{1,           1,        1,           1,
                                    0.5403023F,  0.99995F, 0.5403023F,  0.99995F,
                                    -0.4161468F, 0.9998F,  -0.4161468F, 0.9998F};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(cos.floats[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
  CHECK(sin.floats[5] == doctest::Approx(0.00999983));
  CHECK(sin.floats[10] == doctest::Approx(0.9092974));
}

}  // namespace stowage::test
