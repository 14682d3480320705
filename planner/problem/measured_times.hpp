// MeasuredTimes: what a run on a machine took for each kernel call and for its copies (stowage
// validate --write-calibration). These times replace those that the rates predict.
//
// Calls differ by all that their time may depend on: kernel, types, sizes, strides, attributes and
// format. A measured call takes what it took. Any other call takes what the rates predict, times a
// correction: the measured seconds of its kernel's calls divided by those that the rates predict
// for them (of all measured calls, where none is of its kernel). So measured and other times are of
// one machine, even where the rates are another machine's, as on the host backend, whose "GPU" is
// the host.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/memory/kernel_work.hpp"

namespace stowage {

struct MeasuredCall {
  std::string call;    ///< as call_of() gives it
  std::string kernel;  ///< its name
  KernelWork work;
  double seconds = 0;  ///< the mean over the step's nodes with this call
};

/// seconds = latency + bytes / bandwidth; a bandwidth of 0 is no limit.
struct MeasuredLink {
  double latency = 0;
  double bandwidth = 0;
  bool operator==(const MeasuredLink&) const = default;
};

struct MeasuredTimes {
  std::string backend;  ///< "host", "cuda: NVIDIA H200"
  std::string card;     ///< the only card whose plans may use the times: card_of_times()
  std::string host;     ///< the machine's processor
  std::vector<MeasuredCall> gpu, cpu;  ///< by where the node ran; each call once
  std::optional<MeasuredLink> h2d, d2h;

  /// Whether the "GPU" was the host, so that both sides ran the same kernels.
  [[nodiscard]] bool is_emulated() const { return backend == "host"; }
};

/// A call's key: 16 hexadecimal digits, the same for all calls that may take the same time.
[[nodiscard]] std::string call_of(const SizedStep& step, const KernelNode& node);

/// The seconds of one side (GPU or CPU) by call.
class CallSeconds {
 public:
  CallSeconds() = default;
  /// `by_rates`: the seconds that the rates predict. `elsewhere`: the calls of the other side,
  /// where both were measured on one processor; they are used for calls that this side lacks.
  CallSeconds(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& elsewhere,
              const std::function<double(const KernelWork&)>& by_rates);

  /// Whether nothing was measured, so that the rates alone count.
  [[nodiscard]] bool empty() const { return seconds_.empty(); }
  [[nodiscard]] double of(const SizedStep& step, const KernelNode& node, double by_rates) const;

 private:
  struct Sum {
    double measured = 0, by_rates = 0;
    [[nodiscard]] double ratio() const { return by_rates > 0 ? measured / by_rates : 1; }
  };
  void add(const MeasuredCall& call, double by_rates);

  std::map<std::string, double, std::less<>> seconds_;  // by call
  std::map<std::string, Sum, std::less<>> kernels_;     // by kernel
  Sum all_;
};

}  // namespace stowage
