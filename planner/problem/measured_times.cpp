#include "planner/problem/measured_times.hpp"

#include <fmt/format.h>

#include <iterator>
#include <variant>

#include "estimator/base/hash.hpp"

namespace stowage {

namespace {

constexpr std::size_t call_digits = 16;  // of the hash's 32

class CallText {
 public:
  explicit CallText(std::int64_t batch) : batch_(batch) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void add(const Shape& shape) {
    for (const Affine& extent : shape) add(" {}", extent.real_at(batch_));
    add(";");
  }
  void add(std::string_view role, const std::vector<TensorView>& views) {
    for (const TensorView& view : views) {
      add("{} {}", role, to_string(view.type));
      add(view.shape);
      add(view.strides);
    }
  }
  void add(const Attributes& attributes) {
    for (const auto& [name, value] : attributes.entries()) {
      add("{}=", name);
      if (const auto* shape = std::get_if<Shape>(&value)) {
        add(*shape);
      } else {
        add("{};", to_string(value));
      }
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::int64_t batch_;
};

}  // namespace

std::string call_of(const SizedStep& step, const KernelNode& node) {
  CallText text(step.batch);
  text.add("{}\n{}\n", kernel_name(node), to_string(kernel_work(step, node).format));
  text.add("reads", node.reads);
  text.add("writes", node.writes);
  text.add(node.attributes);
  return hash_text(text.text()).substr(0, call_digits);
}

CallSeconds::CallSeconds(const std::vector<MeasuredCall>& calls,
                         const std::vector<MeasuredCall>& elsewhere,
                         const std::function<double(const KernelWork&)>& by_rates) {
  for (const MeasuredCall& call : calls) add(call, by_rates(call.work));
  for (const MeasuredCall& call : elsewhere) {
    if (!seconds_.contains(call.call)) add(call, by_rates(call.work));
  }
}

void CallSeconds::add(const MeasuredCall& call, double by_rates) {
  seconds_.emplace(call.call, call.seconds);
  for (Sum* sum : {&kernels_[call.kernel], &all_}) {
    sum->measured += call.seconds;
    sum->by_rates += by_rates;
  }
}

double CallSeconds::of(const SizedStep& step, const KernelNode& node, double by_rates) const {
  if (empty()) return by_rates;
  const auto found = seconds_.find(call_of(step, node));
  if (found != seconds_.end()) return found->second;
  const auto kernel = kernels_.find(kernel_name(node));
  return by_rates * (kernel != kernels_.end() ? kernel->second : all_).ratio();
}

}  // namespace stowage
