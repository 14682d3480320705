// Batch and layer normalisation, with PyTorch's definitions: the batch variance normalises biased
// and enters the running variance unbiased; `momentum` is the new value's share.
#include <cmath>

#include "gpu_probe/host/kernels/rows.hpp"

namespace stowage::host {
namespace {

/// [n, channels, area].
struct Planes {
  std::int64_t n, channels, area;
};

Planes planes(const TensorArgument& x) {
  require(x.shape.size() >= 2, "{} has no channel axis", shape_text(x.shape));
  return {x.shape[0], x.shape[1], count(x.shape, 2, x.shape.size())};
}

void require_per_channel(const KernelCall& call, std::size_t first_read, std::size_t last_read,
                         std::size_t first_write, std::int64_t channels) {
  for (std::size_t i = first_read; i < last_read; ++i) {
    require_shape(fmt::format("read {}", i), call.reads[i], {channels});
  }
  for (std::size_t i = first_write; i < call.writes.size(); ++i) {
    require_shape(fmt::format("write {}", i), call.writes[i], {channels});
  }
}

template <typename Visit>
void each_of_channel(const Planes& p, std::int64_t channel, Visit visit) {
  for (std::int64_t image = 0; image < p.n; ++image) {
    const std::int64_t begin = (image * p.channels + channel) * p.area;
    for (std::int64_t i = begin; i < begin + p.area; ++i) visit(i);
  }
}

/// What all forward kernels read; without weight and bias (null) the scale is 1, the shift 0.
struct BatchNormReads {
  Planes p;
  const float *x, *w, *b, *mean;
  const float* variance;  ///< batch_norm_apply: one over the square root of it and eps
};

BatchNormReads batch_norm_reads(const KernelCall& call) {
  const bool affine = call.reads.size() == 5;
  const Planes p = planes(call.reads[0]);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_per_channel(call, 1, call.reads.size(), 1, p.channels);
  return {p,
          floats(call.reads[0]),
          affine ? floats(call.reads[1]) : nullptr,
          affine ? floats(call.reads[2]) : nullptr,
          floats(call.reads[affine ? 3 : 1]),
          floats(call.reads[affine ? 4 : 2])};
}

double at(const float* values, std::int64_t i, double otherwise) {
  return values == nullptr ? otherwise : values[i];
}

/// By the statistics as they are kept, so that what is made of them later is the same to the bit.
void normalise(const BatchNormReads& r, std::int64_t channel, float mean, float invstd, float* y) {
  const float* const x = r.x;
  const double centre = mean, scale = at(r.w, channel, 1), shift = at(r.b, channel, 0);
  each_of_channel(r.p, channel, [&](std::int64_t i) {
    y[i] = static_cast<float>((x[i] - centre) * invstd * scale + shift);
  });
}

}  // namespace

void batch_norm_forward(const KernelCall& call) {
  const BatchNormReads r = batch_norm_reads(call);
  // Not a structured binding, which clang 14 captures in no lambda.
  const Planes& p = r.p;
  const float *x = r.x, *mean = r.mean, *variance = r.variance;
  float* y = mutable_floats(call.writes[0]);
  float *save_mean = mutable_floats(call.writes[1]), *save_invstd = mutable_floats(call.writes[2]),
        *new_mean = mutable_floats(call.writes[3]), *new_variance = mutable_floats(call.writes[4]);
  const double eps = real(call, "eps"), momentum = real(call, "momentum");
  const auto elements = static_cast<double>(p.n * p.area);
  require(elements > 1, "{} has one value a channel; a batch's variance needs more",
          shape_text(call.reads[0].shape));
  for (std::int64_t c = 0; c < p.channels; ++c) {
    double sum = 0, squares = 0;
    each_of_channel(p, c, [&](std::int64_t i) { sum += x[i]; });
    const double mean_of_all = sum / elements;
    each_of_channel(
        p, c, [&](std::int64_t i) { squares += (x[i] - mean_of_all) * (x[i] - mean_of_all); });
    save_mean[c] = static_cast<float>(mean_of_all);
    save_invstd[c] = static_cast<float>(1 / std::sqrt(squares / elements + eps));
    normalise(r, c, save_mean[c], save_invstd[c], y);
    new_mean[c] = static_cast<float>((1 - momentum) * mean[c] + momentum * mean_of_all);
    new_variance[c] =
        static_cast<float>((1 - momentum) * variance[c] + momentum * squares / (elements - 1));
  }
}

void batch_norm_apply(const KernelCall& call) {
  const BatchNormReads r = batch_norm_reads(call);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t c = 0; c < r.p.channels; ++c) normalise(r, c, r.mean[c], r.variance[c], y);
  const std::string function = text(call, "function", "");
  if (function.empty()) return;
  KernelCall activation = call;
  activation.reads = call.writes;
  function == "relu" ? relu_forward(activation) : unary_forward(activation);
}

void batch_norm_inference(const KernelCall& call) {
  const BatchNormReads r = batch_norm_reads(call);
  const Planes& p = r.p;
  const float *x = r.x, *w = r.w, *b = r.b, *mean = r.mean, *variance = r.variance;
  float* y = mutable_floats(call.writes[0]);
  const double eps = real(call, "eps");
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double scale = at(w, c, 1) / std::sqrt(variance[c] + eps);
    each_of_channel(p, c, [&](std::int64_t i) {
      y[i] = static_cast<float>((x[i] - mean[c]) * scale + at(b, c, 0));
    });
  }
}

void batch_norm_backward(const KernelCall& call) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const Planes p = planes(call.reads[0]);
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  require_per_channel(call, 2, call.reads.size(), 1, p.channels);
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  const float* w = affine ? floats(call.reads[2]) : nullptr;
  const float *mean = floats(call.reads[affine ? 3 : 2]),
              *invstd = floats(call.reads[affine ? 4 : 3]);
  float* dx = mutable_floats(call.writes[0]);
  const auto elements = static_cast<double>(p.n * p.area);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    double sum = 0, product = 0;
    each_of_channel(p, c, [&](std::int64_t i) {
      sum += dy[i];
      product += dy[i] * (static_cast<double>(x[i]) - mean[c]) * invstd[c];
    });
    const double scale = at(w, c, 1) * invstd[c];
    each_of_channel(p, c, [&](std::int64_t i) {
      const double normal = (static_cast<double>(x[i]) - mean[c]) * invstd[c];
      dx[i] = static_cast<float>(scale * (dy[i] - sum / elements - normal * product / elements));
    });
    if (!affine) continue;
    mutable_floats(call.writes[1])[c] = static_cast<float>(product);
    mutable_floats(call.writes[2])[c] = static_cast<float>(sum);
  }
}

Rows rows_of(const KernelCall& call, const TensorArgument& x) {
  const auto axes = static_cast<std::size_t>(integer(call, "axes", 1));
  require(axes >= 1 && axes <= x.shape.size(), "{} has no {} trailing axes", shape_text(x.shape),
          axes);
  const auto split = x.shape.end() - static_cast<std::ptrdiff_t>(axes);
  Rows r{.row_shape = Sizes(x.shape.begin(), split), .width_shape = Sizes(split, x.shape.end())};
  r.rows = count(r.row_shape);
  r.width = count(r.width_shape);
  return r;
}

void require_row_statistic(std::string_view what, const TensorArgument& argument, const Rows& r) {
  require(count(argument.shape) == r.rows, "{} is {}, {} values are needed", what,
          shape_text(argument.shape), r.rows);
}

void layer_norm_forward(const KernelCall& call) {
  const Rows r = rows_of(call, call.reads[0]);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_row_statistic("mean", call.writes[1], r);
  require_row_statistic("rstd", call.writes[2], r);
  const bool affine = call.reads.size() == 3;
  if (affine) {
    require_shape("weight", call.reads[1], r.width_shape);
    require_shape("bias", call.reads[2], r.width_shape);
  }
  const float* x = floats(call.reads[0]);
  const float* w = affine ? floats(call.reads[1]) : nullptr;
  const float* b = affine ? floats(call.reads[2]) : nullptr;
  float *y = mutable_floats(call.writes[0]), *means = mutable_floats(call.writes[1]),
        *rstds = mutable_floats(call.writes[2]);
  const double eps = real(call, "eps");
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.width, y += r.width) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < r.width; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(r.width);
    for (std::int64_t i = 0; i < r.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(r.width) + eps);
    for (std::int64_t i = 0; i < r.width; ++i) {
      const double normal = (x[i] - mean) * rstd;
      y[i] = static_cast<float>(affine ? normal * w[i] + b[i] : normal);
    }
    means[row] = static_cast<float>(mean);
    rstds[row] = static_cast<float>(rstd);
  }
}

void layer_norm_backward(const KernelCall& call) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const Rows r = rows_of(call, call.reads[0]);
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  if (affine) {
    require_shape("weight", call.reads[2], r.width_shape);
    require_shape("dw", call.writes[1], r.width_shape);
    require_shape("db", call.writes[2], r.width_shape);
  }
  const auto &mean = call.reads[affine ? 3 : 2], &rstd = call.reads[affine ? 4 : 3];
  require_row_statistic("mean", mean, r);
  require_row_statistic("rstd", rstd, r);
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  const float* w = affine ? floats(call.reads[2]) : nullptr;
  const float *means = floats(mean), *rstds = floats(rstd);
  float* dx = mutable_floats(call.writes[0]);
  std::vector<double> dw(affine ? static_cast<std::size_t>(r.width) : 0), db(dw.size());
  const auto width = static_cast<double>(r.width);
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.width, dy += r.width, dx += r.width) {
    const double centre = means[row], scale = rstds[row];
    double sum = 0, product = 0;
    for (std::int64_t i = 0; i < r.width; ++i) {
      const double normal = (x[i] - centre) * scale;
      const double g = affine ? static_cast<double>(dy[i]) * w[i] : dy[i];
      sum += g;
      product += g * normal;
      if (affine) {
        dw[static_cast<std::size_t>(i)] += dy[i] * normal;
        db[static_cast<std::size_t>(i)] += dy[i];
      }
    }
    for (std::int64_t i = 0; i < r.width; ++i) {
      const double normal = (x[i] - centre) * scale;
      const double g = affine ? static_cast<double>(dy[i]) * w[i] : dy[i];
      dx[i] = static_cast<float>(scale * (g - sum / width - normal * product / width));
    }
  }
  if (affine) {
    float *out_w = mutable_floats(call.writes[1]), *out_b = mutable_floats(call.writes[2]);
    for (std::size_t i = 0; i < dw.size(); ++i) {
      out_w[i] = static_cast<float>(dw[i]);
      out_b[i] = static_cast<float>(db[i]);
    }
  }
}

}  // namespace stowage::host
