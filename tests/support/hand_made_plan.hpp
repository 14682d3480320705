// A step of five nodes and a plan for it, both worked out on paper, so that what the validator says
// of them owes nothing to the planner.
//
//   step  node            reads      writes   side
//   0     fc1.forward     x w1       y1       GPU
//   1     fc2.forward     y1 w2      y2       GPU, with a workspace of 512 bytes
//   2     loss            y2         dy2      GPU, with a temporary of 128 bytes
//   3     fc2.backward    y1 dy2     dw2      GPU
//   4     update.w2       w2 dw2     w2       CPU
//
// x and w2 are uploaded, y1 leaves after step 1 and comes back for step 3, dw2 goes down, w1 stays.
// A floating-point operation takes a second, and so do 256 bytes over the link, after half a one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimator/document/step_hash.hpp"
#include "planner/plan/plan.hpp"

namespace stowage::hand_made {

enum : std::int32_t { x, w1, w2, y1, y2, dy2, dw2, scratch };

inline KernelNode node(std::string name, Phase phase, std::vector<std::int32_t> reads,
                       std::vector<std::int32_t> writes) {
  KernelNode made{.name = std::move(name), .phase = phase};
  for (const std::int32_t id : reads) made.reads.push_back({.storage = StorageId{id}});
  for (const std::int32_t id : writes) made.writes.push_back({.storage = StorageId{id}});
  return made;
}

inline SizedStep step() {
  StepGraph graph;
  const auto storage = [&](std::string name, StorageClass storage_class, Persistence persistence,
                           std::int64_t bytes) {
    graph.storages.push_back({.name = std::move(name),
                              .storage_class = storage_class,
                              .persistence = persistence,
                              .bytes = bytes});
  };
  storage("x", StorageClass::input, Persistence::from_host, 256);
  storage("w1", StorageClass::parameter, Persistence::persistent, 512);
  storage("w2", StorageClass::parameter, Persistence::persistent, 768);
  storage("y1", StorageClass::activation, Persistence::transient, 1024);
  storage("y2", StorageClass::activation, Persistence::transient, 256);
  storage("dy2", StorageClass::activation_gradient, Persistence::transient, 300);
  storage("dw2", StorageClass::gradient, Persistence::transient, 768);
  storage("scratch", StorageClass::temporary, Persistence::transient, 128);
  graph.nodes = {node("fc1.forward", Phase::forward, {x, w1}, {y1}),
                 node("fc2.forward", Phase::forward, {y1, w2}, {y2}),
                 node("loss", Phase::loss, {y2}, {dy2}),
                 node("fc2.backward", Phase::backward, {y1, dy2}, {dw2}),
                 node("update.w2", Phase::update, {w2, dw2}, {w2})};
  graph.nodes[2].temporaries = {StorageId{scratch}};
  graph.nodes[1].convolution = 0;  // so that it has engines
  graph.convolutions.resize(1);
  SizedStep sized;
  for (const Storage& made : graph.storages) {
    sized.storage_bytes.push_back(Bytes(made.bytes.constant));
  }
  sized.graph = std::make_shared<const StepGraph>(std::move(graph));
  sized.batch = 1;
  sized.engines.resize(5);
  sized.engines[1] = {{"rule fast", 512_B}, {"rule small", 0_B}};
  sized.flops = {1, 2, 1, 2, 3};
  sized.bytes_moved = {0, 0, 0, 0, 0};
  sized.workspace_origin = WorkspaceOrigin::rule;
  return sized;
}

inline Residence residence(std::int32_t storage, std::int32_t begin, std::int32_t end,
                           std::int64_t offset) {
  return {StorageId{storage}, {begin, end}, Bytes(offset)};
}
inline Transfer upload(std::int32_t storage, std::int32_t begin, std::int32_t end) {
  return {StorageId{storage}, upload_link, begin, end};
}
inline Transfer download(std::int32_t storage, std::int32_t begin, std::int32_t end) {
  return {StorageId{storage}, download_link, begin, end};
}

inline Plan plan() {
  Plan made;
  made.step = step();
  made.step.engines.assign(5, {});
  made.name = "cheapest";
  made.inputs.step_hash = step_hash(made.step);
  made.machine = gpu_and_host({.gpu_flops = 1,
                               .gpu_launch = 0,
                               .cpu_flops = 1,
                               .cpu_launch = 0,
                               .h2d_bandwidth = 256,
                               .d2h_bandwidth = 256,
                               .h2d_latency = 0.5,
                               .d2h_latency = 0.5});
  made.inputs.available = 8_KiB;
  made.inputs.budget = 4_KiB;
  made.nodes.assign(5, {.processor = gpu_processor});
  made.nodes[1].engine = "rule fast";
  made.nodes[1].workspace = 512_B;
  made.nodes[1].workspace_offset = 2560_B;
  made.nodes[4].processor = cpu_processor;
  made.in(gpu_memory) = {
      residence(x, 0, 1, 512),        residence(w1, 0, 5, 0),    residence(w2, 0, 2, 768),
      residence(y1, 0, 2, 1536),      residence(y2, 1, 3, 512),  residence(dy2, 2, 4, 768),
      residence(scratch, 2, 3, 1280), residence(y1, 3, 4, 1536), residence(dw2, 3, 4, 2560)};
  made.in(pinned_memory) = {residence(x, 0, 1, 1792), residence(w2, 0, 5, 0),
                            residence(y1, 1, 4, 768), residence(dw2, 4, 5, 768)};
  made.transfers = {upload(x, 0, 0), upload(w2, 0, 1), download(y1, 1, 2), upload(y1, 3, 3),
                    download(dw2, 4, 4)};
  made.totals = {.gpu_peak = 3072_B,  // at step 1: w1 w2 y1 y2 and the workspace
                 .arena = 3328_B,
                 .arena_lower_bound = 3072_B,
                 .host_peak = 2048_B,
                 .h2d = 2048_B,  // 256 + 768 + 1024
                 .d2h = 1792_B,  // 1024 + 768
                 .pcie_lower_bound = 1024_B,
                 .cost_seconds = 26.5,  // 9 of nodes, 17.5 of copies
                 .cost_lower_bound_seconds = 20,
                 .all_gpu_cost_seconds = 10.5,  // 9 of nodes, 1.5 of x
                 // x 0-1.5, w2 1.5-5; nodes 1.5-2.5, 5-7, 7-8 (y1 down 2.5-7, up 8-12.5),
                 // 12.5-14.5, (dw2 down 14.5-18), 18-21
                 .step_seconds = 21,
                 .all_gpu_step_seconds = 10.5};
  return made;
}

}  // namespace stowage::hand_made
