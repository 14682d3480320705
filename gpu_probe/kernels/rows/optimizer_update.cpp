// Updates of the other optimizers of the table, as torch.optim, timm.optim and transformers define
// them. The attribute `optimizer` names one; the other attributes are its settings; `step` (default
// 1) counts updates from 1. The state is in the order of the optimizer's row, without the library's
// own counters.
#include <algorithm>
#include <cmath>

#include "gpu_probe/kernels/bodies/whole_update.hpp"
#include "gpu_probe/kernels/rows/update_call.hpp"

namespace stowage::kernels {
namespace {

/// The call, with the settings that all optimizers have.
struct Settings {
  explicit Settings(const KernelCall& kernel_call, Arithmetic kernel_arithmetic)
      : call(kernel_call),
        arithmetic(kernel_arithmetic),
        step(static_cast<double>(integer(kernel_call, "step", 1))),
        rate(real(kernel_call, "learning_rate")),
        decay(real(kernel_call, "weight_decay", 0)) {}

  [[nodiscard]] double setting(std::string_view name) const { return real(call, name); }

  const KernelCall& call;
  Arithmetic arithmetic;
  double step, rate, decay;
};

Launches adagrad(const Settings& s) {
  require_states(s.call, 1);
  const double rate = s.rate / (1 + (s.step - 1) * real(s.call, "learning_rate_decay", 0));
  const double epsilon = s.setting("epsilon");
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    return body::Adagrad<Real>{static_cast<Real>(rate), static_cast<Real>(s.decay),
                               static_cast<Real>(epsilon)};
  });
}

Launches rmsprop(const Settings& s) {
  const double momentum = real(s.call, "momentum", 0), smoothing = s.setting("smoothing"),
               epsilon = s.setting("epsilon");
  const bool centered = boolean(s.call, "centered", false), has_buffer = momentum > 0;
  require_states(s.call, 1 + (has_buffer ? 1U : 0U) + (centered ? 1U : 0U));
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Rmsprop<Real>{as(s.rate),        as(s.decay), as(momentum), as(smoothing),
                               as(1 - smoothing), as(epsilon), has_buffer,   centered};
  });
}

Launches adadelta(const Settings& s) {
  require_states(s.call, 2);
  const double smoothing = s.setting("smoothing"), epsilon = s.setting("epsilon");
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Adadelta<Real>{as(s.rate), as(s.decay), as(smoothing), as(1 - smoothing),
                                as(epsilon)};
  });
}

Launches adamax(const Settings& s) {
  require_states(s.call, 2);
  const double beta1 = s.setting("beta1"), beta2 = s.setting("beta2"),
               epsilon = s.setting("epsilon");
  const double rate = s.rate / (1 - std::pow(beta1, s.step));
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Adamax<Real>{as(rate), as(s.decay), as(1 - beta1), as(beta2), as(epsilon)};
  });
}

template <class Real>
body::Moments<Real> moments_of(const Settings& s) {
  const auto as = [](double value) { return static_cast<Real>(value); };
  const double beta1 = s.setting("beta1"), beta2 = s.setting("beta2");
  return {as(s.rate), as(s.decay),   as(1 - beta1),
          as(beta2),  as(1 - beta2), boolean(s.call, "decoupled", false)};
}

Launches nadam(const Settings& s) {
  require_states(s.call, 2);
  const double beta1 = s.setting("beta1"), epsilon = s.setting("epsilon"),
               decay = s.setting("momentum_decay");
  const auto mu = [&](double step) { return beta1 * (1 - 0.5 * std::pow(0.96, step * decay)); };
  double product = 1;
  for (double step = 1; step <= s.step; ++step) product *= mu(step);
  const double correction = 1 - std::pow(s.setting("beta2"), s.step);
  const double of_gradient = s.rate * (1 - mu(s.step)) / (1 - product);
  const double of_moment = s.rate * mu(s.step + 1) / (1 - product * mu(s.step + 1));
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Nadam<Real>{moments_of<Real>(s), as(of_gradient), as(of_moment), as(correction),
                             as(epsilon)};
  });
}

Launches radam(const Settings& s) {
  require_states(s.call, 2);
  const double beta2 = s.setting("beta2"), epsilon = s.setting("epsilon");
  const double correction1 = 1 - std::pow(s.setting("beta1"), s.step);
  const double correction2 = 1 - std::pow(beta2, s.step);
  const double longest = 2 / (1 - beta2) - 1;
  const double length = longest - 2 * s.step * std::pow(beta2, s.step) / correction2;
  const bool rectifies = length > 5;
  const double rectified = rectifies ? std::sqrt((length - 4) * (length - 2) * longest /
                                                 ((longest - 4) * (longest - 2) * length))
                                     : 1;
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Radam<Real>{moments_of<Real>(s),        as(correction1), as(rectified),
                             as(std::sqrt(correction2)), as(epsilon),     rectifies};
  });
}

Launches lion(const Settings& s) {
  require_states(s.call, 1);
  const double beta1 = s.setting("beta1"), beta2 = s.setting("beta2");
  return update_launches(s.call, s.arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Lion<Real>{as(s.rate), as(1 - s.rate * s.decay), as(1 - beta1), as(1 - beta2)};
  });
}

Launches lamb(const Settings& s) {
  require_states(s.call, 2);
  const double beta1 = s.setting("beta1"), beta2 = s.setting("beta2"),
               epsilon = s.setting("epsilon");
  const double correction1 = 1 - std::pow(beta1, s.step);
  const double correction2 = std::sqrt(1 - std::pow(beta2, s.step));
  const auto& p = s.call.writes[0];
  return {in_formats(p.type, s.arithmetic, [&]<class T, class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return each_group(
        body::Lamb<T, Real>{elements<T>(p), any_floats(s.call.reads[1]),
                            elements<T>(s.call.writes[1]), elements<T>(s.call.writes[2]),
                            count(p.shape), as(s.rate), as(s.decay), as(1 - beta1), as(beta2),
                            as(1 - beta2), as(epsilon), as(correction1), as(correction2)},
        1, body::largest_group);
  })};
}

/// What differs between the Adafactors of the two libraries.
struct AdafactorRule {
  double relative = 0;  ///< the rate divided by the parameter's root mean square
  double kept = 1;      ///< the factor of the parameter before the update
  double decay = 0;     ///< share of the parameter in the update, times the rate
  double share1 = 1;    ///< share of the update in its moment, if it has one
  bool has_moment = false;
  // These keep the second moment from 0: an addend to the squares, the smallest estimate, the
  // smallest mean of a row.
  double addend = 0, estimate = 0, mean = 0;
};

Launches adafactor(const Settings& s, const AdafactorRule& rule) {
  const auto& p = s.call.writes[0];
  const bool is_factored = p.shape.size() >= 2;
  const std::size_t first = rule.has_moment ? 2 : 1;
  require_writes(s.call, first + (is_factored ? 2 : 1));
  const std::int64_t total = count(p.shape), rows = is_factored ? p.shape[p.shape.size() - 2] : 1,
                     columns = is_factored ? p.shape.back() : 1;
  const auto& row = s.call.writes[first];
  if (rule.has_moment) require_same_shape("the moment", s.call.writes[1], p);
  if (total == 0) return {};
  require(count(row.shape) == total / columns, "the rows' state has {} values", count(row.shape));
  if (is_factored) {
    const auto& column = s.call.writes[first + 1];
    require(count(column.shape) == total / rows, "the columns' state has {} values",
            count(column.shape));
  }
  const double share = std::pow(s.step, -s.setting("decay_rate")),
               clip = s.setting("clip_threshold");
  return {in_formats(p.type, s.arithmetic, [&]<class T, class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return each_group(
        body::Adafactor<T, Real>{
            elements<T>(p), any_floats(s.call.reads[1]),
            rule.has_moment ? any_floats(s.call.writes[1]) : no_floats, any_floats(row),
            is_factored ? any_floats(s.call.writes[first + 1]) : no_floats, total, rows, columns,
            is_factored, as(rule.relative), as(rule.kept), as(rule.decay), as(share),
            as(rule.share1), as(clip), as(rule.addend), as(rule.estimate), as(rule.mean)},
        1, body::largest_group);
  })};
}

Launches torch_adafactor(const Settings& s) {
  constexpr double epsilon = 0x1p-23;  // float32's own
  return adafactor(s, {.relative = std::min(s.rate, 1 / std::sqrt(s.step)),
                       .kept = 1 - s.rate * s.decay,
                       .estimate = epsilon * epsilon,
                       .mean = epsilon});
}

Launches transformers_adafactor(const Settings& s) {
  constexpr double largest_relative_step = 1e-2;
  const double beta1 = real(s.call, "beta1", 0);
  return adafactor(
      s, {.relative = s.rate > 0 ? s.rate : std::min(largest_relative_step, 1 / std::sqrt(s.step)),
          .decay = s.decay,
          .share1 = 1 - beta1,
          .has_moment = beta1 > 0,
          .addend = 1e-30});
}

}  // namespace

Launches optimizer_update(const KernelCall& call, Arithmetic arithmetic) {
  require_update_in_place(call);
  const Settings settings(call, arithmetic);
  const std::string optimizer = text(call, "optimizer", "");
  if (optimizer == "adagrad") return adagrad(settings);
  if (optimizer == "rmsprop") return rmsprop(settings);
  if (optimizer == "adadelta") return adadelta(settings);
  if (optimizer == "adamax") return adamax(settings);
  if (optimizer == "nadam") return nadam(settings);
  if (optimizer == "radam") return radam(settings);
  if (optimizer == "lion") return lion(settings);
  if (optimizer == "lamb") return lamb(settings);
  if (optimizer == "adafactor") return torch_adafactor(settings);
  if (optimizer == "adafactor-transformers") return transformers_adafactor(settings);
  throw KernelError(fmt::format("there is no update of '{}'", optimizer));
}

}  // namespace stowage::kernels
