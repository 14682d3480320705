#include "planner/solve/residency_cut.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

#include "planner/solve/host_arcs.hpp"

namespace stowage {

namespace {

// Further handles of a gap, beside nodes and terminals:
constexpr Handle by_ends = -3;  // a gap without price: resident where both its ends are
constexpr Handle no_use = -4;   // a gap whose residency saves nothing

class CutBuilder {
 public:
  CutBuilder(const CutModel& model, const Restrictions& restrictions, const Prices& prices,
             const std::vector<RowPrice>& rows, const HostPrices& host)
      : model_(model),
        problem_(*model.problem),
        restrictions_(restrictions),
        prices_(prices),
        sums_(prices, problem_.operations.size()),
        rows_(rows) {
    if (!host.empty()) host_.emplace(model, host, network_);
    if (!rows.empty()) price_rows();
    for (std::size_t t = 0; t < problem_.operations.size(); ++t) add_operation(t);
    present_.resize(problem_.items.size());
    resident_.resize(problem_.items.size());
    for (std::size_t i = 0; i < problem_.items.size(); ++i) add_item(i);
    if (host_) price_host();
  }

  PricedCut solve() {
    PricedCut result;
    result.contradictory = network_.contradictory;
    if (result.contradictory) return result;
    const MinimumCut cut = minimum_cut(network_.flow);
    result.contradictory = cut.infinite;
    if (result.contradictory) return result;
    const Wide value = network_.constant + cut.value;
    result.value_seconds = seconds_below(value);
    result.bound_seconds = seconds_below(value - budget_price());
    result.least = placement(cut.side, false);
    result.greatest = placement(cut.side, true);
    return result;
  }

 private:
  Capacity scaled(double seconds, double weight) const {
    return static_cast<Capacity>(std::floor(std::ldexp(seconds * weight, model_.unit_exponent)));
  }
  Capacity on_gpu(double seconds) const { return scaled(seconds, model_.weights.gpu); }
  Capacity on_cpu(double seconds) const { return scaled(seconds, model_.weights.cpu); }
  Capacity uploading(const Item& item) const {
    return scaled(item.h2d_seconds, model_.weights.upload);
  }
  Capacity downloading(const Item& item) const {
    return scaled(item.d2h_seconds, model_.weights.download);
  }

  Wide memory_price(Wide price, Bytes bytes) const {
    return (price * bytes.count()) >> model_.price_bits;
  }

  Capacity capped(Wide amount) const {
    return static_cast<Capacity>(std::min<Wide>(amount, model_.cost_cap));
  }

  void memory_arc(Handle from, Wide amount) {
    network_.memory_arc(from, on_sink, amount, model_.cost_cap);
  }

  Wide price_at(std::size_t step) const {
    return sums_.in(StepRange::single(static_cast<std::int32_t>(step)));
  }
  Wide price_inside(const Item& item, std::int32_t gap) const {
    const auto steps = static_cast<std::int32_t>(problem_.operations.size());
    return sums_.in(steps_inside(item, gap, steps));
  }

  // The price that the rows add to an item's touch or gap.
  struct Surcharge {
    std::int32_t index = 0;
    bool gap = false;
    Wide amount = 0;
  };

  void price_rows() {
    surcharges_.resize(problem_.items.size());
    for (const RowPrice& row : rows_) {
      for (const MemoryTerm& term : row.row->terms) {
        surcharges_[static_cast<std::size_t>(term.item)].push_back(
            {term.index, term.gap, static_cast<Wide>(row.price) * term.weight});
      }
    }
  }

  Wide in_rows(std::size_t item, std::int32_t index, bool gap) const {
    Wide sum = 0;
    if (surcharges_.empty()) return sum;
    for (const Surcharge& surcharge : surcharges_[item]) {
      if (surcharge.index == index && surcharge.gap == gap) sum += surcharge.amount;
    }
    return sum >> model_.price_bits;
  }

  Wide engine_price(std::size_t t, const EngineCost& engine) const {
    const Operation& operation = problem_.operations[t];
    return on_gpu(engine.seconds) + memory_price(price_at(t), engine.workspace) +
           memory_price(price_at(t), operation.temporaries);
  }

  std::int32_t cheapest_engine(std::size_t t) const {
    const std::vector<EngineCost>& engines = problem_.operations[t].engines;
    std::size_t best = 0;
    for (std::size_t k = 1; k < engines.size(); ++k) {
      if (engine_price(t, engines[k]) < engine_price(t, engines[best])) best = k;
    }
    return static_cast<std::int32_t>(best);
  }

  void add_operation(std::size_t t) {
    const Operation& operation = problem_.operations[t];
    engine_.push_back(cheapest_engine(t));
    const auto engine = static_cast<std::size_t>(engine_.back());
    const Wide gpu = engine_price(t, operation.engines[engine]);
    const Pin pin = restrictions_.device[t];
    Handle device = pin == Pin::gpu ? on_source : on_sink;
    if (pin == Pin::free) device = network_.flow.add_node();
    device_.push_back(device);
    network_.arc(on_source, device, on_cpu(operation.cpu_seconds));
    if (device == on_source)
      network_.constant += gpu;
    else
      network_.arc(device, on_sink, capped(gpu));
  }

  Handle device_of(const Item& item, std::int32_t touch) const {
    return device_[static_cast<std::size_t>(item.touches[static_cast<std::size_t>(touch)].step)];
  }

  // A touch has a GPU copy where its operation runs there. At a CPU read a copy may stay, which
  // needs a node of its own only where a gap leads to the touch and another one from it. An item
  // that is pinned to stay in a gap is there at both its ends.
  Handle presence(const Item& item, std::int32_t touch) {
    const Handle device = device_of(item, touch);
    const Touch& at = item.touches[static_cast<std::size_t>(touch)];
    const auto count = static_cast<std::int32_t>(item.touches.size());
    const std::int32_t next = touch + 1 < count ? touch + 1 : (item.wraps ? 0 : -1);
    const bool stays = gap_before(item, touch) >= 0 && next >= 0 &&
                       item.touches[static_cast<std::size_t>(next)].reads;
    if (at.writes || device == on_source) return device;
    const std::int32_t before = gap_before(item, touch);
    if ((before >= 0 && gap_pin(item, before) == GapPin::resident) ||
        (touch < gap_count(item) && gap_pin(item, touch) == GapPin::resident)) {
      return on_source;
    }
    if (!stays) return device;
    const Handle copy = network_.flow.add_node();
    network_.arc(device, copy, infinite_capacity);
    return copy;
  }

  void add_item(std::size_t index) {
    const Item& item = problem_.items[index];
    std::vector<Handle>& present = present_[index];
    resident_[index].assign(static_cast<std::size_t>(gap_count(item)), no_use);
    for (std::int32_t i = 0; i < std::ssize(item.touches); ++i) {
      present.push_back(presence(item, i));
      const auto step = static_cast<std::size_t>(item.touches[static_cast<std::size_t>(i)].step);
      memory_arc(present.back(),
                 memory_price(price_at(step), item.bytes) + in_rows(index, i, false));
    }
    for (const Version& version : model_.versions[index]) {
      const Handle no_host_copy = add_host_copy(item, version);
      for (const std::int32_t reader : version.readers) {
        add_read(index, reader, no_host_copy);
      }
    }
  }

  // z: no host copy of the version is ever made; on_sink where one exists at no cost. Also on_sink
  // where neither a CPU reader nor a fetch can need one.
  Handle add_host_copy(const Item& item, const Version& version) {
    if (version.producer < 0) return on_sink;
    const Handle producer = device_of(item, version.producer);
    if (producer == on_sink || version.readers.empty()) return on_sink;
    const Handle no_host_copy = network_.flow.add_node();
    network_.arc(producer, no_host_copy, downloading(item));
    for (const std::int32_t reader : version.readers) {
      network_.arc(no_host_copy, device_of(item, reader), infinite_capacity);
    }
    return no_host_copy;
  }

  void add_read(std::size_t index, std::int32_t reader, Handle no_host_copy) {
    const Item& item = problem_.items[index];
    const std::vector<Handle>& present = present_[index];
    const Handle here = present[static_cast<std::size_t>(reader)];
    const Capacity fetch = uploading(item);
    const std::int32_t gap = gap_before(item, reader);
    if (gap < 0) return network_.arc(here, on_sink, fetch);
    const auto at = static_cast<std::size_t>(gap);
    const Handle before = present[at];
    const Wide price =
        memory_price(price_inside(item, gap), item.bytes) + in_rows(index, gap, true);
    const GapPin pin = restrictions_.gap[index][at];
    Handle& resident = resident_[index][at];
    if (pin == GapPin::free && price == 0) {
      resident = by_ends;
      return network_.arc(here, before, fetch);
    }
    resident = pin == GapPin::resident ? on_source : on_sink;
    if (pin == GapPin::free) resident = network_.flow.add_node();
    if (pin == GapPin::resident) network_.arc(on_source, here, infinite_capacity);
    network_.arc(resident, before, infinite_capacity);
    network_.arc(here, resident, fetch);
    network_.arc(no_host_copy, resident, infinite_capacity);
    memory_arc(resident, price);
  }

  void price_host() {
    for (std::size_t t = 0; t < device_.size(); ++t) {
      host_->add_operation(static_cast<std::int32_t>(t), device_[t]);
    }
    for (std::size_t index = 0; index < problem_.items.size(); ++index) {
      const Item& item = problem_.items[index];
      ItemHandles handles{{}, present_[index], {}};
      for (std::int32_t i = 0; i < std::ssize(item.touches); ++i) {
        handles.device.push_back(device_of(item, i));
        const std::int32_t gap = gap_before(item, i);
        const auto at = static_cast<std::size_t>(std::max(gap, 0));
        Handle stays = gap < 0 ? on_sink : resident_[index][at];
        if (stays == by_ends) stays = present_[index][at];
        if (stays == no_use) stays = on_sink;
        handles.stays.push_back(stays);
      }
      host_->add_item(index, handles);
    }
  }

  Wide budget_price() const {
    Wide sum = 0;
    for (const StepPrice& p : prices_) {
      sum += static_cast<Wide>(p.price) * model_.limits[static_cast<std::size_t>(p.step)].count();
    }
    for (const RowPrice& p : rows_) sum += static_cast<Wide>(p.price) * p.row->limit;
    const Wide rounded_up = -((-sum) >> model_.price_bits);
    return rounded_up + (host_ ? host_->budget_price() : 0);
  }

  double seconds_below(Wide units) const {
    auto value = static_cast<double>(units);
    if (static_cast<Wide>(value) > units) {
      value = std::nextafter(value, -std::numeric_limits<double>::infinity());
    }
    return std::ldexp(value, -model_.unit_exponent);
  }

  Placement placement(const std::vector<CutSide>& side, bool greatest) const {
    const auto on = [&](Handle handle) {
      if (handle < 0) return handle == on_source;
      const CutSide s = side[static_cast<std::size_t>(handle)];
      return s == CutSide::source || (greatest && s == CutSide::either);
    };
    Placement result;
    for (std::size_t t = 0; t < device_.size(); ++t) {
      const bool gpu = on(device_[t]);
      result.device.push_back(gpu ? Device::gpu : Device::cpu);
      result.engine.push_back(gpu ? engine_[t] : 0);
    }
    for (std::size_t index = 0; index < present_.size(); ++index) {
      const std::size_t count = present_[index].size();
      std::vector<bool> present(count);
      std::vector<bool> resident(resident_[index].size());
      for (std::size_t i = 0; i < count; ++i) present[i] = on(present_[index][i]);
      for (std::size_t gap = 0; gap < resident.size(); ++gap) {
        const Handle handle = resident_[index][gap];
        resident[gap] = handle != no_use && present[gap] && present[(gap + 1) % count] &&
                        (handle == by_ends || on(handle));
      }
      drop_idle_copies(problem_.items[index], result.device, resident, present);
      result.on_gpu.push_back(std::move(present));
      result.resident.push_back(std::move(resident));
    }
    return result;
  }

  // A copy beside a CPU reader that neither came through a gap nor goes into one is of no use.
  static void drop_idle_copies(const Item& item, const std::vector<Device>& device,
                               const std::vector<bool>& resident, std::vector<bool>& present) {
    for (std::int32_t i = 0; i < std::ssize(item.touches); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (device[static_cast<std::size_t>(item.touches[at].step)] == Device::gpu) continue;
      const std::int32_t before = gap_before(item, i);
      const bool used = (before >= 0 && resident[static_cast<std::size_t>(before)]) ||
                        (at < resident.size() && resident[at]);
      if (!used) present[at] = false;
    }
  }

  const CutModel& model_;
  const ResidencyProblem& problem_;
  const Restrictions& restrictions_;
  const Prices& prices_;
  const PriceSums<Wide> sums_;
  const std::vector<RowPrice>& rows_;
  std::vector<std::vector<Surcharge>> surcharges_;  // by item; empty without rows
  PricedNetwork network_;
  std::optional<HostArcs> host_;
  std::vector<Handle> device_;
  std::vector<std::int32_t> engine_;
  std::vector<std::vector<Handle>> present_;
  std::vector<std::vector<Handle>> resident_;
};

}  // namespace

double CutModel::unit() const { return std::ldexp(1.0, -unit_exponent); }

double CutModel::price_unit() const { return std::ldexp(1.0, -unit_exponent - price_bits); }

Restrictions restrictions_of(const ResidencyProblem& problem) {
  Restrictions restrictions;
  for (const Operation& operation : problem.operations) {
    restrictions.device.push_back(operation.pin);
  }
  for (const Item& item : problem.items) {
    restrictions.gap.emplace_back(static_cast<std::size_t>(gap_count(item)), GapPin::free);
    if (!item.gap_pins.empty()) restrictions.gap.back() = item.gap_pins;
  }
  return restrictions;
}

CutModel make_cut_model(const ResidencyProblem& problem, std::vector<Bytes> limits,
                        const HostLimits& host) {
  assert(limits.size() == problem.operations.size());
  CutModel model;
  model.problem = &problem;
  model.limits = std::move(limits);
  model.host = host;
  double cost_cap = 0;  // every time and every transfer paid
  double terms = 8;     // how many capacities there can be, generously
  for (const Operation& operation : problem.operations) {
    double gpu = 0;
    for (const EngineCost& engine : operation.engines) gpu = std::max(gpu, engine.seconds);
    cost_cap += operation.cpu_seconds + gpu;
    terms += host.any() ? 3 : 2;
  }
  for (const Item& item : problem.items) {
    const auto touches = static_cast<double>(item.touches.size());
    cost_cap += touches * (item.h2d_seconds + item.d2h_seconds);
    terms += (host.any() ? 10 : 6) * touches;
    model.versions.push_back(versions_of(item));
  }
  const double largest = std::ldexp(1.0, 61) / (terms * std::max(cost_cap, 1e-9));
  model.unit_exponent = std::min(50, static_cast<int>(std::floor(std::log2(largest))));
  // The unit is fine enough for the price that spreads the cost of a whole problem over the bytes
  // of one storage.
  double bytes = 0;
  for (const Item& item : problem.items) bytes += static_cast<double>(item.bytes.count());
  const double mean = std::max(bytes / static_cast<double>(problem.items.size() + 1), 1.0);
  const double highest = std::log2(std::max(cost_cap, 1e-9) / mean) + model.unit_exponent;
  model.price_bits = std::clamp(static_cast<int>(std::floor(58 - highest)), 0, 40);
  model.cost_cap = static_cast<Capacity>(std::ceil(std::ldexp(cost_cap, model.unit_exponent))) + 1;
  return model;
}

std::int64_t work_of_cut(const CutModel& model) {
  std::size_t touches = 0;
  for (const Item& item : model.problem->items) touches += item.touches.size();
  return 10 + static_cast<std::int64_t>(model.problem->operations.size() + touches) / 4;
}

PricedCut cheapest_placement(const CutModel& model, const Restrictions& restrictions,
                             const Prices& prices, const std::vector<RowPrice>& rows,
                             const HostPrices& host) {
  return CutBuilder(model, restrictions, prices, rows, host).solve();
}

}  // namespace stowage
