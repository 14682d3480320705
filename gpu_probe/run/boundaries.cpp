#include "gpu_probe/run/boundaries.hpp"

#include "planner/plan/two_sides.hpp"

namespace stowage {

std::vector<Boundary> boundaries_of(const Plan& plan) {
  std::vector<Boundary> boundaries(plan.nodes.size() + 1);
  const auto at = [&](std::int32_t step) -> Boundary& {
    return boundaries[static_cast<std::size_t>(step)];
  };
  const std::vector<Residence>& on_gpu = residences_in(plan, MemoryKind::device);
  const std::vector<Residence> on_host = residences_on(plan, Device::cpu);
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    at(on_gpu[i].steps.begin).gpu_begins.push_back(i);
    at(on_gpu[i].steps.end).gpu_ends.push_back(i);
  }
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    at(on_host[i].steps.begin).host_begins.push_back(i);
    at(on_host[i].steps.end).host_ends.push_back(i);
  }
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& t = plan.transfers[i];
    const bool upload = direction_of(plan, t) == Direction::h2d;
    (upload ? at(t.begin).upload_begins : at(t.begin).download_begins).push_back(i);
    (upload ? at(t.end).upload_ends : at(t.end).download_ends).push_back(i);
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) == Device::gpu) continue;
    const StepRange window = window_of(plan, NodeId::of(i));
    at(window.begin).cpu_begins.push_back(NodeId::of(i));
    at(window.end).cpu_ends.push_back(NodeId::of(i));
  }
  return boundaries;
}

}  // namespace stowage
