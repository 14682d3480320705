// The updates of the optimizer table's other rows, as torch.optim, timm.optim and transformers
// define them. `optimizer` says which; the other attributes are its settings; `step` (default 1)
// counts updates from 1. State stands in the row's order, without the library's bookkeeping.
#include <algorithm>
#include <array>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// p, g and the state; factored state has shapes of its own.
struct Arguments {
  explicit Arguments(const KernelCall& kernel_call)
      : call(kernel_call),
        p(mutable_floats(kernel_call.writes[0])),
        g(floats(kernel_call.reads[1])),
        elements(count(kernel_call.reads[0].shape)),
        step(static_cast<double>(integer(kernel_call, "step", 1))),
        rate(real(kernel_call, "learning_rate")),
        decay(real(kernel_call, "weight_decay", 0)) {
    require_same_shape("the gradient", call.reads[1], call.reads[0]);
    require_in_place(0, 0);
    for (std::size_t i = 1; i < call.writes.size(); ++i) require_in_place(i, i + 1);
  }

  void require_in_place(std::size_t write, std::size_t read) const {
    require(call.writes[write].data == call.reads[read].data, "write {} is not in place", write);
    require_same_shape(fmt::format("write {}", write), call.writes[write], call.reads[read]);
  }
  /// The state tensors, each of the parameter's shape.
  template <std::size_t size>
  [[nodiscard]] std::array<float*, size> state() const {
    require_writes(call, size + 1);
    std::array<float*, size> found{};
    for (std::size_t i = 0; i < size; ++i) {
      require_same_shape(fmt::format("state {}", i), call.reads[i + 2], call.reads[0]);
      found[i] = mutable_floats(call.writes[i + 1]);
    }
    return found;
  }

  const KernelCall& call;
  float* p;
  const float* g;
  std::int64_t elements;
  double step, rate, decay;
};

double lerp(double from, double to, double share) { return from + share * (to - from); }

float narrowed(double value) { return static_cast<float>(value); }

void adagrad(const Arguments& a) {
  const auto [sum] = a.state<1>();
  const double rate = a.rate / (1 + (a.step - 1) * real(a.call, "learning_rate_decay", 0));
  const double epsilon = real(a.call, "epsilon");
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double g = a.g[i] + a.decay * a.p[i];
    const double total = sum[i] + g * g;
    sum[i] = narrowed(total);
    a.p[i] = narrowed(a.p[i] - rate * g / (std::sqrt(total) + epsilon));
  }
}

void rmsprop(const Arguments& a) {
  const double momentum = real(a.call, "momentum", 0), smoothing = real(a.call, "smoothing"),
               epsilon = real(a.call, "epsilon");
  const bool centered = boolean(a.call, "centered", false);
  float *square = nullptr, *buffer = nullptr, *mean = nullptr;
  if (momentum > 0 && centered) {
    const auto state = a.state<3>();
    square = state[0], buffer = state[1], mean = state[2];
  } else if (momentum > 0 || centered) {
    const auto state = a.state<2>();
    square = state[0], (centered ? mean : buffer) = state[1];
  } else {
    square = a.state<1>()[0];
  }
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double g = a.g[i] + a.decay * a.p[i];
    const double squares = smoothing * square[i] + (1 - smoothing) * g * g;
    square[i] = narrowed(squares);
    double variance = squares;
    if (centered) {
      const double gradients = lerp(mean[i], g, 1 - smoothing);
      mean[i] = narrowed(gradients);
      variance -= gradients * gradients;
    }
    double update = g / (std::sqrt(variance) + epsilon);
    if (buffer != nullptr) {
      update += momentum * buffer[i];
      buffer[i] = narrowed(update);
    }
    a.p[i] = narrowed(a.p[i] - a.rate * update);
  }
}

void adadelta(const Arguments& a) {
  const auto [square, accumulated] = a.state<2>();
  const double smoothing = real(a.call, "smoothing"), epsilon = real(a.call, "epsilon");
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double g = a.g[i] + a.decay * a.p[i];
    const double squares = smoothing * square[i] + (1 - smoothing) * g * g;
    const double delta = std::sqrt(accumulated[i] + epsilon) / std::sqrt(squares + epsilon) * g;
    square[i] = narrowed(squares);
    accumulated[i] = narrowed(smoothing * accumulated[i] + (1 - smoothing) * delta * delta);
    a.p[i] = narrowed(a.p[i] - a.rate * delta);
  }
}

void adamax(const Arguments& a) {
  const auto [moment, norm] = a.state<2>();
  const double beta1 = real(a.call, "beta1"), beta2 = real(a.call, "beta2"),
               epsilon = real(a.call, "epsilon");
  const double rate = a.rate / (1 - std::pow(beta1, a.step));
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double g = a.g[i] + a.decay * a.p[i];
    const double first = lerp(moment[i], g, 1 - beta1);
    const double largest = std::max(beta2 * norm[i], std::abs(g) + epsilon);
    moment[i] = narrowed(first);
    norm[i] = narrowed(largest);
    a.p[i] = narrowed(a.p[i] - rate * first / largest);
  }
}

// Adam's two moments, and weight decay on either way; then `update(g, first, second)`.
template <typename Step>
void with_moments(const Arguments& a, Step update) {
  const auto [moment, square] = a.state<2>();
  const double beta1 = real(a.call, "beta1"), beta2 = real(a.call, "beta2");
  const bool decoupled = boolean(a.call, "decoupled", false);
  for (std::int64_t i = 0; i < a.elements; ++i) {
    double value = a.p[i], g = a.g[i];
    if (decoupled) {
      value -= a.rate * a.decay * value;
    } else {
      g += a.decay * value;
    }
    const double first = lerp(moment[i], g, 1 - beta1);
    const double second = beta2 * square[i] + (1 - beta2) * g * g;
    moment[i] = narrowed(first);
    square[i] = narrowed(second);
    a.p[i] = narrowed(value - update(g, first, second));
  }
}

void nadam(const Arguments& a) {
  const double beta1 = real(a.call, "beta1"), epsilon = real(a.call, "epsilon"),
               decay = real(a.call, "momentum_decay");
  const auto mu = [&](double step) { return beta1 * (1 - 0.5 * std::pow(0.96, step * decay)); };
  double product = 1;
  for (double step = 1; step <= a.step; ++step) product *= mu(step);
  const double correction = 1 - std::pow(real(a.call, "beta2"), a.step);
  const double of_gradient = a.rate * (1 - mu(a.step)) / (1 - product);
  const double of_moment = a.rate * mu(a.step + 1) / (1 - product * mu(a.step + 1));
  with_moments(a, [&](double g, double first, double second) {
    return (of_gradient * g + of_moment * first) / (std::sqrt(second / correction) + epsilon);
  });
}

void radam(const Arguments& a) {
  const double beta2 = real(a.call, "beta2"), epsilon = real(a.call, "epsilon");
  const double correction1 = 1 - std::pow(real(a.call, "beta1"), a.step);
  const double correction2 = 1 - std::pow(beta2, a.step);
  const double longest = 2 / (1 - beta2) - 1;
  const double length = longest - 2 * a.step * std::pow(beta2, a.step) / correction2;
  const double rectified =
      std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  with_moments(a, [&](double, double first, double second) {
    const double plain = a.rate * first / correction1;
    if (length <= 5) return plain;
    return plain * rectified * std::sqrt(correction2) / (std::sqrt(second) + epsilon);
  });
}

void lion(const Arguments& a) {
  const auto [moment] = a.state<1>();
  const double beta1 = real(a.call, "beta1"), beta2 = real(a.call, "beta2");
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double direction = lerp(moment[i], a.g[i], 1 - beta1);
    const double sign = direction > 0 ? 1 : direction < 0 ? -1 : 0;
    a.p[i] = narrowed(a.p[i] * (1 - a.rate * a.decay) - a.rate * sign);
    moment[i] = narrowed(lerp(moment[i], a.g[i], 1 - beta2));
  }
}

// Two passes, so that no update has to be kept: the norms first.
void lamb(const Arguments& a) {
  const auto [moment, square] = a.state<2>();
  const double beta1 = real(a.call, "beta1"), beta2 = real(a.call, "beta2"),
               epsilon = real(a.call, "epsilon");
  const double correction1 = 1 - std::pow(beta1, a.step);
  const double correction2 = std::sqrt(1 - std::pow(beta2, a.step));
  const auto update = [&, m = moment, v = square](std::int64_t i) {
    const double adam =
        m[i] / correction1 / (std::sqrt(static_cast<double>(v[i])) / correction2 + epsilon);
    return adam + a.decay * a.p[i];
  };
  double weights = 0, updates = 0;
  for (std::int64_t i = 0; i < a.elements; ++i) {
    const double g = a.g[i];
    moment[i] = narrowed(lerp(moment[i], g, 1 - beta1));
    square[i] = narrowed(beta2 * square[i] + (1 - beta2) * g * g);
    weights += static_cast<double>(a.p[i]) * a.p[i];
    updates += update(i) * update(i);
  }
  const bool adapts = a.decay != 0 && weights > 0 && updates > 0;
  const double rate = a.rate * (adapts ? std::sqrt(weights / updates) : 1);
  for (std::int64_t i = 0; i < a.elements; ++i) a.p[i] = narrowed(a.p[i] - rate * update(i));
}

double root_mean_square(const float* values, std::int64_t elements) {
  double squares = 0;
  for (std::int64_t i = 0; i < elements; ++i) squares += static_cast<double>(values[i]) * values[i];
  return std::sqrt(squares / static_cast<double>(elements));
}

/// A second moment as rows and columns of matrices; the axes before the last two are a batch.
struct Factors {
  explicit Factors(const Arguments& a, std::size_t first_state) {
    const Sizes& shape = a.call.reads[0].shape;
    rows = shape[shape.size() - 2];
    columns = shape.back();
    row = mutable_floats(a.call.writes[first_state]);
    column = mutable_floats(a.call.writes[first_state + 1]);
    require(count(a.call.writes[first_state].shape) == a.elements / columns,
            "the rows' state has {} values", count(a.call.writes[first_state].shape));
    require(count(a.call.writes[first_state + 1].shape) == a.elements / rows,
            "the columns' state has {} values", count(a.call.writes[first_state + 1].shape));
  }
  [[nodiscard]] std::int64_t row_of(std::int64_t i) const { return i / columns; }
  [[nodiscard]] std::int64_t column_of(std::int64_t i) const {
    return i / (rows * columns) * columns + i % columns;
  }
  /// Both factors move by `share` towards the gradients' mean squares, each plus `floor`.
  void follow(const Arguments& a, double share, double floor) const {
    for (std::int64_t r = 0; r < a.elements / columns; ++r) {
      double squares = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double g = a.g[r * columns + c];
        squares += g * g + floor;
      }
      row[r] = narrowed(lerp(row[r], squares / static_cast<double>(columns), share));
    }
    for (std::int64_t c = 0; c < a.elements / rows; ++c) {
      const std::int64_t start = c / columns * rows * columns + c % columns;
      double squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const double g = a.g[start + r * columns];
        squares += g * g + floor;
      }
      column[c] = narrowed(lerp(column[c], squares / static_cast<double>(rows), share));
    }
  }
  [[nodiscard]] double mean_of_rows(std::int64_t matrix) const {
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += row[matrix * rows + r];
    return sum / static_cast<double>(rows);
  }
  /// The second moment's estimate, element by element, into `use(i, estimate)`; the rows' mean, by
  /// which it is divided, is taken to be at least `least_mean`.
  template <typename Use>
  void for_each(const Arguments& a, double least_mean, Use use) const {
    for (std::int64_t matrix = 0; matrix < a.elements / (rows * columns); ++matrix) {
      const double mean = std::max(mean_of_rows(matrix), least_mean);
      for (std::int64_t k = 0; k < rows * columns; ++k) {
        const std::int64_t i = matrix * rows * columns + k;
        use(i, static_cast<double>(row[row_of(i)]) * column[column_of(i)] / mean);
      }
    }
  }

  std::int64_t rows = 0, columns = 0;
  float *row = nullptr, *column = nullptr;
};

/// What keeps a second moment from 0.
struct Smallest {
  double addend = 0;    ///< to the gradient's squares
  double estimate = 0;  ///< of the second moment
  double mean = 0;      ///< of its rows
};

// Both Adafactors: the second moment follows the gradient, the update's root mean square is
// clipped, and `apply(i, update)` takes it. Two passes over the estimate, so that no update has to
// be kept.
template <typename Apply>
void adafactor_step(const Arguments& a, std::size_t first_state, Smallest smallest, Apply apply) {
  const double share = std::pow(a.step, -real(a.call, "decay_rate"));
  const auto over_estimates = [&](auto use) {
    if (a.call.reads[0].shape.size() >= 2) {
      Factors(a, first_state).for_each(a, smallest.mean, use);
    } else {
      const float* variance = floats(a.call.writes[first_state]);
      for (std::int64_t i = 0; i < a.elements; ++i) use(i, static_cast<double>(variance[i]));
    }
  };
  if (a.call.reads[0].shape.size() >= 2) {
    Factors(a, first_state).follow(a, share, smallest.addend);
  } else {
    float* variance = mutable_floats(a.call.writes[first_state]);
    for (std::int64_t i = 0; i < a.elements; ++i) {
      const double g = a.g[i];
      variance[i] = narrowed(lerp(variance[i], g * g + smallest.addend, share));
    }
  }
  double squares = 0;
  over_estimates([&](std::int64_t i, double estimate) {
    const double update = a.g[i] / std::sqrt(std::max(estimate, smallest.estimate));
    squares += update * update;
  });
  const double mean = std::sqrt(squares / static_cast<double>(a.elements));
  const double clipped = std::max(1.0, mean / real(a.call, "clip_threshold"));
  over_estimates([&](std::int64_t i, double estimate) {
    apply(i, a.g[i] / std::sqrt(std::max(estimate, smallest.estimate)) / clipped);
  });
}

void require_factored_arity(const Arguments& a, std::size_t moments) {
  const std::size_t state = moments + (a.call.reads[0].shape.size() >= 2 ? 2 : 1);
  require_writes(a.call, state + 1);
}

void torch_adafactor(const Arguments& a) {
  constexpr double epsilon = 0x1p-23, smallest_scale = 1e-3;  // float32's own epsilon
  constexpr Smallest smallest{.estimate = epsilon * epsilon, .mean = epsilon};
  require_factored_arity(a, 0);
  const double rate = std::max(smallest_scale, root_mean_square(a.p, a.elements)) *
                      std::min(a.rate, 1 / std::sqrt(a.step));
  for (std::int64_t i = 0; i < a.elements; ++i) a.p[i] = narrowed(a.p[i] * (1 - a.rate * a.decay));
  adafactor_step(a, 1, smallest,
                 [&](std::int64_t i, double update) { a.p[i] = narrowed(a.p[i] - rate * update); });
}

void transformers_adafactor(const Arguments& a) {
  constexpr double smallest_scale = 1e-3, largest_relative_step = 1e-2;
  const double beta1 = real(a.call, "beta1", 0);
  const bool has_moment = beta1 > 0;
  require_factored_arity(a, has_moment ? 1 : 0);
  float* moment = has_moment ? mutable_floats(a.call.writes[1]) : nullptr;
  const double relative =
      a.rate > 0 ? a.rate : std::min(largest_relative_step, 1 / std::sqrt(a.step));
  const double rate = relative * std::max(smallest_scale, root_mean_square(a.p, a.elements));
  adafactor_step(a, has_moment ? 2 : 1, {.addend = 1e-30}, [&](std::int64_t i, double update) {
    update *= rate;
    if (has_moment) {
      update = lerp(moment[i], update, 1 - beta1);
      moment[i] = narrowed(update);
    }
    a.p[i] = narrowed(a.p[i] * (1 - a.decay * rate) - update);
  });
}

}  // namespace

void optimizer_update(const KernelCall& call) {
  require(call.reads.size() >= 2 && call.writes.size() + 1 == call.reads.size(),
          "reads {} and writes {} tensors; all but the gradient are updated", call.reads.size(),
          call.writes.size());
  const Arguments arguments(call);
  const std::string optimizer = text(call, "optimizer", "");
  if (optimizer == "adagrad") return adagrad(arguments);
  if (optimizer == "rmsprop") return rmsprop(arguments);
  if (optimizer == "adadelta") return adadelta(arguments);
  if (optimizer == "adamax") return adamax(arguments);
  if (optimizer == "nadam") return nadam(arguments);
  if (optimizer == "radam") return radam(arguments);
  if (optimizer == "lion") return lion(arguments);
  if (optimizer == "lamb") return lamb(arguments);
  if (optimizer == "adafactor") return torch_adafactor(arguments);
  if (optimizer == "adafactor-transformers") return transformers_adafactor(arguments);
  throw KernelError(fmt::format("there is no update of '{}'", optimizer));
}

}  // namespace stowage::host
