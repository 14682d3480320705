#include "tests/gpu_probe/host/kernels/kernel_samples.hpp"

#include "estimator/step/rnn_reserve.hpp"

namespace stowage::test {
namespace {

using K = Kernel;

SampleArgument f(Sizes shape) { return {std::move(shape)}; }
SampleArgument i(Sizes shape) { return {std::move(shape), false, DataType::int64}; }
SampleArgument m(Sizes shape) { return {std::move(shape), false, DataType::boolean}; }
SampleArgument values(std::int64_t count) { return {{4 * count}, false, DataType::uint8, true}; }

using I = std::int64_t;

const SampleArgument image = f({2, 4, 4, 4}), small = f({2, 4, 2, 2}), scalar = f({});
const SampleArgument filter = f({4, 4, 3, 3}), channels = f({4}), matrix = f({2, 4});
const AttributeList same{{"padding", I{1}}}, pair{{"kernel", I{2}}}, plain;

std::vector<KernelSample> convolutions() {
  return {{K::convolution_forward, same, {image, filter, channels}, {image}},
          {K::convolution_backward_data, same, {image, filter}, {image}},
          {K::convolution_backward_filter, same, {image, image}, {filter}},
          {K::transposed_convolution_forward, same, {image, filter, channels}, {image}},
          {K::transposed_convolution_backward_data, same, {image, filter}, {image}},
          {K::transposed_convolution_backward_filter, same, {image, image}, {filter}},
          {K::channel_sum, {{"axis", I{1}}}, {image}, {channels}},
          {K::linear_forward, plain, {matrix, f({3, 4}), f({3})}, {f({2, 3})}},
          {K::linear_backward_data, plain, {f({2, 3}), f({3, 4})}, {matrix}},
          {K::linear_backward_filter, plain, {matrix, f({2, 3})}, {f({3, 4})}},
          {K::matmul, plain, {matrix, f({4, 3})}, {f({2, 3})}}};
}

std::vector<KernelSample> normalisations() {
  const AttributeList eps{{"eps", 1e-5}, {"momentum", 0.1}};
  const AttributeList last{{"eps", 1e-5}, {"axes", I{1}}};
  const AttributeList groups{{"eps", 1e-5}, {"groups", I{2}}};
  const AttributeList response{{"size", I{3}}, {"alpha", 1e-4}, {"beta", 0.75}, {"k", 1.0}};
  const SampleArgument c = channels, rows = f({2}), per_group = f({2, 2});
  return {{K::batch_norm_forward, eps, {image, c, c, c, c}, {image, c, c, c, c}},
          {K::batch_norm_inference, eps, {image, c, c, c, c}, {image}},
          {K::batch_norm_apply, plain, {image, c, c, c, c}, {image}},
          {K::batch_norm_backward, eps, {image, image, c, c, c}, {image, c, c}},
          {K::layer_norm_forward, last, {matrix, c, c}, {matrix, rows, rows}},
          {K::layer_norm_backward, last, {matrix, matrix, c, rows, rows}, {matrix, c, c}},
          {K::group_norm_forward, groups, {image, c, c}, {image, per_group, per_group}},
          {K::group_norm_backward, groups, {image, image, c, per_group, per_group}, {image, c, c}},
          {K::rms_norm_forward, last, {matrix, c}, {matrix, rows}},
          {K::rms_norm_backward, last, {matrix, matrix, c, rows}, {matrix, c}},
          {K::local_response_norm_forward, response, {image}, {image, image}},
          {K::local_response_norm_backward, response, {image, image, image, image}, {image}}};
}

std::vector<KernelSample> pointwise() {
  const AttributeList tanh{{"function", std::string("tanh")}}, half{{"p", 0.5}};
  const AttributeList larger{{"operation", std::string("maximum")}};
  const SampleArgument mask = m({2, 4, 4, 4}), features = m({2, 4, 1, 1}), x = matrix;
  return {{K::relu_forward, plain, {x}, {x}},
          {K::relu_backward, plain, {x, x}, {x}},
          {K::gelu_forward, plain, {x}, {x}},
          {K::gelu_backward, plain, {x, x}, {x}},
          {K::dropout_forward, half, {image}, {image, mask}},
          {K::dropout_backward, half, {image, mask}, {image}},
          {K::add, plain, {x, channels}, {x}},
          {K::multiply, plain, {x, channels}, {x}},
          {K::sum_to_shape, plain, {x}, {channels}},
          {K::accumulate, plain, {x, x}, {x}, {0}},
          {K::unary_forward, tanh, {x}, {x}},
          {K::unary_backward, tanh, {x, x}, {x}},
          {K::prelu_forward, plain, {x, channels}, {x}},
          {K::prelu_backward, plain, {x, channels, x}, {x, channels}},
          {K::glu_forward, plain, {x}, {f({2, 2})}},
          {K::glu_backward, plain, {x, f({2, 2})}, {x}},
          {K::subtract, plain, {x, channels}, {x}},
          {K::maximum, plain, {x, channels}, {x}},
          {K::minimum, plain, {x, channels}, {x}},
          {K::extremum_backward, larger, {x, channels, x}, {x}},
          {K::divide, plain, {x, channels}, {x}},
          {K::scale, {{"factor", 2.0}}, {x}, {x}},
          {K::feature_dropout_forward, half, {image}, {image, features}},
          {K::feature_dropout_backward, half, {image, features}, {image}}};
}

std::vector<KernelSample> windows() {
  return {{K::max_pool_forward, pair, {image}, {small, i({2, 4, 2, 2})}},
          {K::max_pool_backward, pair, {image, small, small}, {image}},
          {K::avg_pool_forward, pair, {image}, {small}},
          {K::avg_pool_backward, pair, {small}, {image}},
          {K::adaptive_avg_pool_forward, plain, {image}, {small}},
          {K::adaptive_avg_pool_backward, plain, {small}, {image}},
          {K::adaptive_max_pool_forward, plain, {image}, {small, i({2, 4, 2, 2})}},
          {K::adaptive_max_pool_backward, plain, {image, small, small}, {image}},
          {K::upsample_forward, plain, {small}, {image}},
          {K::upsample_backward, plain, {image}, {small}}};
}

std::vector<KernelSample> layout() {
  const AttributeList wider{{"before", Sizes{0, 1}}, {"after", Sizes{0, 2}}};
  return {{K::concatenate, {{"axis", I{0}}}, {matrix, matrix}, {f({4, 4})}},
          {K::slice, {{"axis", I{1}}, {"start", I{1}}}, {matrix}, {f({2, 2})}},
          {K::permute, {{"axes", Sizes{1, 0}}}, {matrix}, {f({4, 2})}},
          {K::copy, plain, {matrix}, {matrix}},
          {K::cast, plain, {matrix}, {matrix}},
          {K::fill, {{"value", 2.0}}, {}, {matrix}},
          {K::iota, plain, {}, {matrix}},
          {K::embedding_forward, plain, {i({2}), f({3, 4})}, {matrix}},
          {K::embedding_backward, plain, {i({2}), matrix}, {f({3, 4})}},
          {K::reduce, {{"axes", I{1}}, {"operation", std::string("sum")}}, {matrix}, {f({2})}},
          {K::expand, {{"factor", 1.0}}, {channels}, {matrix}},
          {K::pad, wider, {matrix}, {f({2, 7})}},
          {K::pad_backward, wider, {f({2, 7})}, {matrix}},
          {K::roll, {{"axes", I{1}}, {"shifts", I{1}}}, {matrix}, {matrix}}};
}

std::vector<KernelSample> along_axes() {
  const AttributeList spread{{"axes", I{1}}, {"operation", std::string("variance")}};
  const AttributeList last{{"axis", I{1}}};
  const AttributeList largest{{"axis", I{1}}, {"operation", std::string("maximum")}};
  const AttributeList two{{"axis", I{1}}, {"count", I{2}}};
  return {{K::statistic_forward, spread, {matrix}, {f({2})}},
          {K::statistic_backward, spread, {matrix, f({2}), f({2})}, {matrix}},
          {K::extreme_place, largest, {matrix}, {i({2}), f({2})}},
          {K::top_places, two, {matrix}, {f({2, 2}), i({2, 2})}},
          {K::cumulate, last, {matrix}, {matrix}}};
}

std::vector<KernelSample> by_index() {
  const AttributeList first{{"axis", I{0}}}, equal{{"operation", std::string("eq")}},
      both{{"operation", std::string("and")}};
  // The tables have so many rows that the indices of a trial, 1 and 2, are among them.
  const SampleArgument table = f({4, 4}), rows = i({3}), taken = f({3, 4}), each = i({2, 4});
  return {{K::compare, equal, {matrix, channels}, {m({2, 4})}},
          {K::logical, both, {m({2, 4}), m({4})}, {m({2, 4})}},
          {K::select, plain, {m({4}), matrix, channels}, {matrix}},
          {K::triangle, plain, {matrix}, {matrix}},
          {K::one_hot, plain, {f({2})}, {f({2, 4})}},
          {K::unfold, pair, {image}, {f({2, 16, 9})}},
          {K::fold, pair, {f({2, 16, 9})}, {image}},
          {K::take_forward, first, {table, rows}, {taken}},
          {K::take_backward, first, {rows, taken}, {table}},
          {K::index_add, first, {table, rows, taken}, {table}},
          {K::gather_forward, first, {table, each}, {matrix}},
          {K::gather_backward, first, {each, matrix}, {table}},
          {K::scatter_add, first, {table, each, matrix}, {table}}};
}

std::vector<KernelSample> quantised() {
  const SampleArgument bytes{{8}, false, DataType::uint8}, half{{4}, false, DataType::uint8};
  const AttributeList block{{"block", I{4}}}, rows{{"encoding", std::string("int8")}};
  const SampleArgument maxima = f({2});
  return {{K::dequantize_blocks, block, {bytes, maxima, f({256}), scalar}, {f({8})}},
          {K::dequantize_4bit, block, {half, maxima, f({16})}, {matrix}},
          {K::dequantize_rows, rows, {bytes, maxima}, {matrix}}};
}

std::vector<KernelSample> losses_and_updates() {
  const SampleArgument x = matrix;
  const AttributeList rate{{"learning_rate", 0.1}},
      adam{{"learning_rate", 0.1}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}},
      adagrad{{"optimizer", std::string("adagrad")}, {"learning_rate", 0.1}, {"epsilon", 1e-8}};
  return {{K::softmax_forward, plain, {x}, {x}},
          {K::softmax_backward, plain, {x, x}, {x}},
          {K::log_softmax_forward, plain, {x}, {x}},
          {K::log_softmax_backward, plain, {x, x}, {x}},
          {K::nll_loss_forward, plain, {x, i({2})}, {scalar}},
          {K::nll_loss_backward, plain, {x, i({2})}, {x}},
          {K::cross_entropy_forward, plain, {x, i({2})}, {scalar, f({2})}},
          {K::cross_entropy_backward, plain, {x, i({2}), f({2})}, {x}},
          {K::mse_forward, plain, {x, x}, {scalar}},
          {K::mse_backward, plain, {x, x}, {x}},
          {K::l1_forward, plain, {x, x}, {scalar}},
          {K::l1_backward, plain, {x, x}, {x}},
          {K::bce_forward, plain, {x, x}, {scalar}},
          {K::bce_backward, plain, {x, x}, {x}},
          {K::kl_div_forward, plain, {x, x}, {scalar}},
          {K::kl_div_backward, plain, {x, x}, {x}},
          {K::sgd_update, rate, {x, x, x}, {x, x}, {0, 2}},
          {K::adam_update, adam, {x, x, x, x}, {x, x, x}, {0, 2, 3}},
          {K::optimizer_update, adagrad, {x, x, x}, {x, x}, {0, 2}}};
}

std::vector<KernelSample> sequences() {
  const SampleArgument x = f({3, 2, 4}), y = f({3, 2, 5}), h = f({1, 2, 5}), w_ih = f({15, 4}),
                       w_hh = f({15, 5}), table = f({2, 4}),
                       reserve = values(std::int64_t{3} * 2 * rnn_reserve_values("gru", 1, 1, 5));
  const AttributeList gru{{"cell", std::string("gru")}};
  const SampleArgument q = f({1, 2, 3, 4}), k = f({1, 1, 5, 4}), bias = f({3, 5}),
                       logsumexp{{1, 2, 3}, false};
  return {{K::attention_forward, plain, {q, k, k, bias}, {q, logsumexp}},
          {K::attention_backward, plain, {q, q, k, k, q, logsumexp, bias}, {q, k, k, bias}},
          {K::rotary_forward, plain, {x, table, table}, {x}},
          {K::rotary_backward, plain, {x, table, table}, {x}},
          {K::rotary_table, plain, {}, {table, table}},
          {K::relative_buckets, plain, {}, {matrix}},
          {K::rnn_forward, gru, {x, h, w_ih, w_hh}, {y, h, reserve}},
          {K::rnn_backward, gru, {x, h, w_ih, w_hh, y, reserve, y}, {x, h, w_ih, w_hh}}};
}

}  // namespace

const std::vector<KernelSample>& kernel_samples() {
  static const std::vector<KernelSample> samples = [] {
    std::vector<KernelSample> all;
    for (const auto& family :
         {convolutions(), normalisations(), pointwise(), windows(), layout(), along_axes(),
          by_index(), quantised(), losses_and_updates(), sequences()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return samples;
}

Result<void> try_sample(const KernelSample& sample, DataType floating) {
  constexpr std::size_t widest = 8;  // bytes of an element
  std::vector<std::vector<std::uint64_t>> storages;
  const auto argument = [&](const SampleArgument& wanted) {
    Sizes shape = wanted.shape;
    if (wanted.doubles && floating == DataType::float64) shape[0] *= 2;
    storages.emplace_back(elements(shape) * widest / sizeof(std::uint64_t) + 1, 0);
    return TensorArgument{reinterpret_cast<std::byte*>(storages.back().data()),
                          wanted.floating ? floating : wanted.type, shape};
  };
  std::vector<TensorArgument> reads, writes;
  for (const SampleArgument& read : sample.reads) reads.push_back(argument(read));
  for (const SampleArgument& write : sample.writes) writes.push_back(argument(write));
  for (std::size_t i = 0; i < sample.in_place.size(); ++i) {
    writes[i].data = reads[sample.in_place[i]].data;
  }
  const Attributes attributes = attributes_of(sample.attributes);
  return run_host_kernel({.kernel = sample.kernel,
                          .device = Device::cpu,
                          .attributes = &attributes,
                          .reads = reads,
                          .writes = writes,
                          .engine = {},
                          .workspace = nullptr,
                          .workspace_bytes = {}});
}

}  // namespace stowage::test
