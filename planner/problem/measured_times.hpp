// MeasuredTimes: what a run on a machine took for each kernel call and for its copies
// (stowage validate --write-calibration), in place of what the rates say.
//
// Calls are told apart by all that their time may depend on: kernel, types, sizes, strides,
// attributes and format. A call that was measured takes what it took. One that was not takes what
// the rates say, times what the measured calls of its kernel took over what the rates say of them
// (of all measured calls, where none is of its kernel): so measured and other times are of one
// machine, also where the rates are another's, as on the host backend, whose "GPU" is the host.
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
  std::string call;    ///< call_of()
  std::string kernel;  ///< its name
  KernelWork work;
  double seconds = 0;  ///< the mean over the step's nodes with this call
};

/// seconds = latency + bytes / bandwidth; a bandwidth of 0 limits nothing.
struct MeasuredLink {
  double latency = 0;
  double bandwidth = 0;
  bool operator==(const MeasuredLink&) const = default;
};

struct MeasuredTimes {
  std::string backend;                 ///< "host", "cuda: NVIDIA H200"
  std::string card;                    ///< the only one whose plans it is for: card_of_times()
  std::string host;                    ///< the machine's processor
  std::vector<MeasuredCall> gpu, cpu;  ///< by where the node was placed; each call once
  std::optional<MeasuredLink> h2d, d2h;

  /// The "GPU" was the host, and so both sides ran the same kernels.
  [[nodiscard]] bool is_emulated() const { return backend == "host"; }
};

/// 16 hexadecimal digits, the same for all calls that may take the same time.
[[nodiscard]] std::string call_of(const SizedStep& step, const KernelNode& node);

/// One side's seconds by call.
class CallSeconds {
 public:
  CallSeconds() = default;
  /// `by_rates`: what they say of a call. `elsewhere`: the other side's calls, where these were
  /// measured on the same processor; they stand in for what this side lacks.
  CallSeconds(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& elsewhere,
              const std::function<double(const KernelWork&)>& by_rates);

  /// Nothing was measured: the rates alone count.
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
