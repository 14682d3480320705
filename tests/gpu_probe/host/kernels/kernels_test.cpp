// Properties of host kernels that PyTorch's values do not cover: masks that repeat, constants,
// refusals.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

const Attributes no_attributes;

}  // namespace

TEST_CASE("dropout gives the same mask whenever it runs, another one for another seed") {
  const Sizes shape{100, 100};
  Tensor x = tensor(shape, std::vector<float>(10000, 1.0F));
  const auto draw = [&](std::int64_t seed) {
    Tensor y = unwritten(shape), dropped = mask(shape);
    run(Kernel::dropout_forward, attributes_of({{"p", 0.25}, {"seed", seed}}), {&x},
        {&y, &dropped});
    return std::pair{y, dropped};
  };
  auto [y, dropped] = draw(7);
  CHECK(draw(7).second.bytes == dropped.bytes);
  CHECK(draw(8).second.bytes != dropped.bytes);
  const int kept = std::accumulate(dropped.bytes.begin(), dropped.bytes.end(), 0);
  CHECK(kept > 7300);  // 7,500 expected, standard deviation 43
  CHECK(kept < 7700);
  for (std::size_t i = 0; i < y.floats.size(); ++i) {
    REQUIRE(y.floats[i] == (dropped.bytes[i] != 0 ? 1 / 0.75F : 0.0F));
  }
  const Tensor dx =
      result(Kernel::dropout_backward, attributes_of({{"p", 0.25}}), {&x, &dropped}, shape);
  CHECK(dx.floats == y.floats);  // dy is all ones, as x was
}

TEST_CASE("indices are added, multiplied and repeated, masks are filled and repeated") {
  Tensor a = integer_tensor({2, 1}, {3, -4}), b = integer_tensor({3}, {1, 2, 1LL << 62});
  const auto of_both = [&](Kernel kernel) {
    Tensor y = integer_tensor({2, 3}, std::vector<std::int64_t>(6));
    run(kernel, no_attributes, {&a, &b}, {&y});
    return y.integers;
  };
  using Integers = std::vector<std::int64_t>;
  CHECK(of_both(Kernel::add) == Integers{4, 5, (1LL << 62) + 3, -3, -2, (1LL << 62) - 4});
  CHECK(of_both(Kernel::subtract) == Integers{2, 1, 3 - (1LL << 62), -5, -6, -4 - (1LL << 62)});
  // Beyond 64 bits they wrap round.
  CHECK(of_both(Kernel::multiply) == Integers{3, 6, -(1LL << 62), -4, -8, 0});
  Tensor repeated = integer_tensor({2, 2}, {0, 0, 0, 0});
  run(Kernel::expand, no_attributes, {&a}, {&repeated});
  CHECK(repeated.integers == Integers{3, 3, -4, -4});
  const Attributes half = attributes_of({{"factor", 0.5}});
  CHECK(refusal(Kernel::expand, half, {&a}, {&repeated}) == "expand: a factor of 0.5 in int64");
  Tensor seen = mask({1, 2}), each = mask({2, 2});
  run(Kernel::fill, attributes_of({{"value", 3.0}}), {}, {&seen});
  run(Kernel::expand, no_attributes, {&seen}, {&each});
  CHECK(each.bytes == std::vector<std::uint8_t>{1, 1, 1, 1});
}

TEST_CASE("feature dropout drops a channel as a whole") {
  Tensor x = tensor({50, 40, 3}, std::vector<float>(6000, 2.0F));
  Tensor y = unwritten(x.shape), dropped = mask({50, 40, 1}), elements = mask({50, 40});
  const Attributes some = attributes_of({{"p", 0.25}, {"seed", std::int64_t{7}}});
  run(Kernel::feature_dropout_forward, some, {&x}, {&y, &dropped});
  Tensor channels = tensor({50, 40}, std::vector<float>(2000, 1.0F)), kept = unwritten({50, 40});
  run(Kernel::dropout_forward, some, {&channels}, {&kept, &elements});
  CHECK(dropped.bytes == elements.bytes);
  for (std::size_t i = 0; i < y.floats.size(); ++i) {
    REQUIRE(y.floats[i] == (dropped.bytes[i / 3] != 0 ? 2 / 0.75F : 0.0F));
  }
  CHECK(result(Kernel::feature_dropout_backward, some, {&x, &dropped}, x.shape).floats == y.floats);
  Tensor wrong = mask({50, 1, 3});
  CHECK(refusal(Kernel::feature_dropout_forward, some, {&x}, {&y, &wrong}) ==
        "feature_dropout_forward: mask [50, 1, 3] is not [50, 40, 3] with trailing ones");
}

TEST_CASE("a recurrent network in inference is the one without dropout, and keeps nothing") {
  Tensor x = tensor({2, 1, 2}, {1, -2, 0.5, 3}), h0 = tensor({2, 1, 2}, {0.1, 0.2, 0.3, 0.4});
  Tensor w = tensor({2, 2}, {0.5, -0.25, 0.75, 1});
  const auto forward = [&](double dropout, bool keeps) {
    Tensor y = unwritten({2, 1, 2}), hn = unwritten({2, 1, 2}), reserve = mask({16});
    reserve.type = DataType::uint8;
    std::vector<Tensor*> writes{&y, &hn};
    if (keeps) writes.push_back(&reserve);
    run(Kernel::rnn_forward,
        attributes_of(
            {{"cell", std::string("tanh")}, {"layers", std::int64_t{2}}, {"dropout", dropout}}),
        {&x, &h0, &w, &w, &w, &w}, writes);
    return y.floats;
  };
  CHECK(forward(0.5, false) == forward(0, true));
  CHECK(forward(0.5, true) != forward(0, true));
}

TEST_CASE("a poisoned input shows in the result of relu, dropout, pooling and softmax") {
  Tensor x = tensor({1, 1, 2, 2}, {1, NAN, 2, 3});
  const auto poisoned = [](const Tensor& y) {
    return std::any_of(y.floats.begin(), y.floats.end(), [](float v) { return std::isnan(v); });
  };
  CHECK(poisoned(result(Kernel::relu_forward, no_attributes, {&x}, x.shape)));
  CHECK(poisoned(result(Kernel::softmax_forward, no_attributes, {&x}, x.shape)));
  const Attributes kernel = attributes_of({{"kernel", std::int64_t{2}}});
  CHECK(poisoned(result(Kernel::max_pool_forward, kernel, {&x}, {1, 1, 1, 1})));
  for (std::int64_t seed = 0; seed < 8; ++seed) {
    Tensor y = unwritten(x.shape), dropped = mask(x.shape);
    run(Kernel::dropout_forward, attributes_of({{"p", 0.5}, {"seed", seed}}), {&x}, {&y, &dropped});
    CHECK(poisoned(y));
  }
  Tensor other = tensor({1, 1, 1, 1}, {9});
  CHECK(poisoned(result(Kernel::max_pool_backward, kernel, {&x, &other, &other}, x.shape)));
}

TEST_CASE("constants, counts and sums in place") {
  CHECK(result(Kernel::fill, attributes_of({{"value", 2.5}}), {}, {3}).floats ==
        std::vector<float>{2.5, 2.5, 2.5});
  Tensor counted = integer_tensor({2, 3}, std::vector<std::int64_t>(6, -1));
  run(Kernel::iota, no_attributes, {}, {&counted});
  CHECK(counted.integers == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2});
  Tensor a = tensor({3}, {1, 2, 3}), b = tensor({3}, {10, 20, 30});
  run(Kernel::accumulate, no_attributes, {&a, &b}, {&a});
  CHECK(a.floats == std::vector<float>{11, 22, 33});
  Tensor x = tensor({2}, {-1, 2});
  run(Kernel::relu_forward, no_attributes, {&x}, {&x});
  CHECK(x.floats == std::vector<float>{0, 2});
}

TEST_CASE("integers move as floats do") {
  Tensor tokens = integer_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor tail = integer_tensor({2, 2}, {0, 0, 0, 0});
  run(Kernel::slice, attributes_of({{"axis", std::int64_t{1}}, {"start", std::int64_t{1}}}),
      {&tokens}, {&tail});
  CHECK(tail.integers == std::vector<std::int64_t>{2, 3, 5, 6});
  Tensor turned = integer_tensor({3, 2}, std::vector<std::int64_t>(6));
  run(Kernel::permute, attributes_of({{"axes", Sizes{1, 0}}}), {&tokens}, {&turned});
  CHECK(turned.integers == std::vector<std::int64_t>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("the first of equal maxima is the one that is remembered and gets the gradient") {
  Tensor x = tensor({1, 1, 1, 4}, {3, 3, 1, 3});
  Tensor y = unwritten({1, 1, 1, 2}), dy = tensor({1, 1, 1, 2}, {5, 7});
  Tensor indices = integer_tensor({1, 1, 1, 2}, {-1, -1});
  const Attributes pair = attributes_of({{"kernel", Sizes{1, 2}}});
  run(Kernel::max_pool_forward, pair, {&x}, {&y, &indices});
  CHECK(indices.integers == std::vector<std::int64_t>{0, 3});
  CHECK(result(Kernel::max_pool_backward, pair, {&x, &y, &dy}, x.shape).floats ==
        std::vector<float>{5, 0, 0, 7});
}

TEST_CASE("layer normalisation without weight is the one with weight 1 and bias 0") {
  Tensor x = tensor({2, 3}, {1, 2, 4, -3, 0, 5}), dy = tensor({2, 3}, {1, -2, 3, 0.5, 1, 2});
  Tensor w = tensor({3}, {1, 1, 1}), b = tensor({3}, {0, 0, 0});
  const Attributes eps = attributes_of({{"axes", std::int64_t{1}}, {"eps", 1e-5}});
  Tensor y = unwritten({2, 3}), plain = y, mean = unwritten({2}), rstd = unwritten({2});
  run(Kernel::layer_norm_forward, eps, {&x, &w, &b}, {&y, &mean, &rstd});
  run(Kernel::layer_norm_forward, eps, {&x}, {&plain, &mean, &rstd});
  CHECK(plain.floats == y.floats);
  Tensor dx = unwritten({2, 3}), plain_dx = dx, dw = unwritten({3}), db = unwritten({3});
  run(Kernel::layer_norm_backward, eps, {&x, &dy, &w, &mean, &rstd}, {&dx, &dw, &db});
  run(Kernel::layer_norm_backward, eps, {&x, &dy, &mean, &rstd}, {&plain_dx});
  CHECK(plain_dx.floats == dx.floats);
}

TEST_CASE("batch normalisation without weight is the one with weight 1 and bias 0") {
  Tensor x = tensor({3, 2}, {1, 2, 4, -3, 0, 5}), dy = tensor({3, 2}, {1, -2, 3, 0.5, 1, 2});
  Tensor w = tensor({2}, {1, 1}), b = tensor({2}, {0, 0});
  Tensor zero = tensor({2}, {0, 0}), one = tensor({2}, {1, 1});
  const Attributes some = attributes_of({{"eps", 1e-5}, {"momentum", 0.1}});
  Tensor y = unwritten({3, 2}), plain = y, mean = unwritten({2}), invstd = mean, m = mean, v = mean;
  run(Kernel::batch_norm_forward, some, {&x, &w, &b, &zero, &one}, {&y, &mean, &invstd, &m, &v});
  run(Kernel::batch_norm_forward, some, {&x, &zero, &one}, {&plain, &mean, &invstd, &m, &v});
  CHECK(plain.floats == y.floats);
  Tensor dx = unwritten({3, 2}), plain_dx = dx, dw = unwritten({2}), db = unwritten({2});
  run(Kernel::batch_norm_backward, some, {&x, &dy, &w, &mean, &invstd}, {&dx, &dw, &db});
  run(Kernel::batch_norm_backward, some, {&x, &dy, &mean, &invstd}, {&plain_dx});
  CHECK(plain_dx.floats == dx.floats);
  CHECK(result(Kernel::batch_norm_inference, some, {&x, &m, &v}, x.shape).floats ==
        result(Kernel::batch_norm_inference, some, {&x, &w, &b, &m, &v}, x.shape).floats);
}

TEST_CASE("batch normalisation by the statistics that were made leaves the same bits") {
  const Tensor x = tensor({3, 2}, {1, 2, 4, -3, 0, 5});
  Tensor w = tensor({2}, {2, -0.5}), b = tensor({2}, {0.25, 3});
  Tensor zero = tensor({2}, {0, 0}), one = tensor({2}, {1, 1});
  const Attributes some = attributes_of({{"eps", 1e-5}, {"momentum", 0.1}});
  Tensor y = unwritten({3, 2}), mean = unwritten({2}), invstd = mean, m = mean, v = mean;
  Tensor first = x, again = x;
  run(Kernel::batch_norm_forward, some, {&first, &w, &b, &zero, &one},
      {&y, &mean, &invstd, &m, &v});
  CHECK(result(Kernel::batch_norm_apply, no_attributes, {&again, &w, &b, &mean, &invstd}, x.shape)
            .floats == y.floats);
  run(Kernel::batch_norm_apply, no_attributes, {&again, &w, &b, &mean, &invstd}, {&again});
  CHECK(again.floats == y.floats);
  // With an activation in the same pass, which changes some of the values.
  for (const std::string function : {"relu", "relu6", "clamp"}) {
    CAPTURE(function);
    Attributes of = attributes_of({{"function", function}});
    if (function == "clamp") of.set("maximum", 1.0);
    again = x;
    const Tensor fused =
        result(Kernel::batch_norm_apply, of, {&again, &w, &b, &mean, &invstd}, x.shape);
    const Tensor apart = function == "relu" ? result(Kernel::relu_forward, of, {&y}, x.shape)
                                            : result(Kernel::unary_forward, of, {&y}, x.shape);
    CHECK(fused.floats == apart.floats);
    CHECK(fused.floats != y.floats);
  }
}

TEST_CASE("calls that do not fit are refused with their shapes") {
  Tensor image = unwritten({1, 3, 8, 8}), weight = unwritten({4, 3, 3, 3});
  Tensor small = unwritten({1, 4, 5, 5}), wrong = unwritten({1, 5, 6, 6});
  CHECK(refusal(Kernel::convolution_forward, no_attributes, {&image, &weight}, {&small}) ==
        "convolution_forward: input [1, 3, 8, 8] and weight [4, 3, 3, 3] give 6 instead of 5 along "
        "axis 2");
  CHECK(refusal(Kernel::convolution_forward, no_attributes, {&image, &weight}, {&wrong}) ==
        "convolution_forward: input [1, 3, 8, 8], weight [4, 3, 3, 3] and output [1, 5, 6, 6] do "
        "not belong together with 1 groups");
  Tensor a = unwritten({3, 4}), b = unwritten({5, 6}), y = unwritten({3, 6});
  CHECK(refusal(Kernel::matmul, no_attributes, {&a, &b}, {&y}) ==
        "matmul: [3, 4] times [5, 6] does not give [3, 6]");
  CHECK(refusal(Kernel::add, no_attributes, {&a, &b}, {&a}) ==
        "add: [5, 6] does not broadcast to [3, 4]");
  Tensor tokens = integer_tensor({2}, {0, 5}), table = unwritten({5, 6}), rows = unwritten({2, 6});
  CHECK(refusal(Kernel::embedding_forward, no_attributes, {&tokens, &table}, {&rows}) ==
        "embedding_forward: index 5 is not below 5");
  CHECK(refusal(Kernel::relu_forward, no_attributes, {&tokens}, {&tokens}) ==
        "relu_forward: reads int64 as 'x' where it takes float32, float64, float16, bfloat16");
  CHECK(refusal(Kernel::batch_norm_forward, no_attributes, {&a}, {&a}) ==
        "batch_norm_forward: reads 1 tensor where it takes x, [w, b], mean, var");
  CHECK(refusal(Kernel::fill, no_attributes, {}, {&a}) == "fill: attribute 'value' is missing");
}

}  // namespace stowage::test
