#include "planner/solve/host_arcs.hpp"

#include "planner/problem/host_use.hpp"

namespace stowage {

HostArcs::HostArcs(const CutModel& model, const HostPrices& prices, PricedNetwork& network)
    : model_(model),
      prices_(prices),
      network_(network),
      all_(prices.all, model.problem->operations.size()),
      pinned_(prices.pinned, model.problem->operations.size()) {}

HostArcs::Amount HostArcs::price_of(StepRange steps, Bytes bytes) const {
  if (steps.empty()) return {};
  const auto amount = [&](const PriceSums<Wide>& prices) {
    const auto price = prices.in(steps);
    return (price * bytes.count()) >> model_.price_bits;
  };
  return {amount(all_), amount(pinned_)};
}

void HostArcs::pay(const Amount& amount, Handle on_gpu, Handle unless) {
  network_.memory_arc(on_source, unless, amount.all, model_.cost_cap);
  if (amount.pinned > 0) network_.memory_arc(on_gpu, unless, amount.pinned, model_.cost_cap);
}

void HostArcs::add_operation(std::int32_t step, Handle device) {
  const Bytes bytes = model_.problem->operations[static_cast<std::size_t>(step)].temporaries;
  pay({price_of(StepRange::single(step), bytes).all, 0}, on_sink, device);
}

void HostArcs::add_item(std::size_t index, const ItemHandles& handles) {
  const Item& item = model_.problem->items[index];
  const auto steps = static_cast<std::int32_t>(model_.problem->operations.size());
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  Handle ever = on_sink;  // on the GPU
  if (!prices_.pinned.empty()) {
    ever = network_.flow.add_node();
    for (const Handle present : handles.present) network_.arc(present, ever, infinite_capacity);
  }
  for (const Version& version : model_.versions[index]) {
    if (version.producer >= 0 && !item.touches[at(version.producer)].reads) {
      const StepRange here = StepRange::single(item.touches[at(version.producer)].step);
      pay(price_of(here, item.bytes), ever, handles.device[at(version.producer)]);
    }
    std::vector<Handle> implied;  // by the next node: no need of a reader at it or later
    for (std::size_t i = version.readers.size(); i-- > 0;) {
      const std::int32_t reader = version.readers[i];
      implied.push_back(handles.device[at(reader)]);
      implied.push_back(handles.stays[at(reader)]);
      const HostSpan span = host_span(item, version, i, steps);
      Amount amount = price_of(span.within, item.bytes);
      const Amount wrapped = price_of(span.wrapped, item.bytes);
      amount.all += wrapped.all;
      amount.pinned += wrapped.pinned;
      if (!amount.any()) continue;
      const Handle no_need = network_.flow.add_node();
      for (const Handle handle : implied) network_.arc(no_need, handle, infinite_capacity);
      implied = {no_need};
      pay(amount, ever, no_need);
    }
  }
}

Wide HostArcs::budget_price() const {
  Wide sum = 0;
  if (!prices_.all.empty()) sum += all_.total() * model_.host.all.count();
  if (!prices_.pinned.empty()) sum += pinned_.total() * model_.host.pinned.count();
  return -((-sum) >> model_.price_bits);
}

}  // namespace stowage
