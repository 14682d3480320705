// bitsandbytes' optimizers. Read in bitsandbytes 0.50.2, not run: it needs a GPU. State as in
// optim/optimizer.py, Optimizer2State.init_state (blocks of 256 since 0.44).
//
// The paged ones have the names that transformers' TrainingArguments has for them.
// Optimizer8bit.get_state_buffer (optim/optimizer.py) takes the state of a parameter of 100,000
// elements or more from cudaMallocManaged (functional.py, get_paged); smaller ones, and the maxima
// and the codes of 8 bits, are tensors as others are. A step prefetches the state of one parameter
// to the device before it updates that (prefetch_state); nothing is ever sent back but by the
// driver, which evicts managed pages when an allocation finds no room.
#include "estimator/optimizer/rows.hpp"
#include "estimator/optimizer/update_script.hpp"

namespace stowage::optimizers {

namespace {

constexpr std::int64_t least_paged = 100'000;  // elements

constexpr std::int64_t least_of_8_bits = 4096;  // elements; smaller tensors stay in float32
constexpr std::int64_t map_entries = 256;

bool has_8_bits(const UpdatedTensor& tensor) { return element_count(tensor) >= least_of_8_bits; }
bool keeps_8_bits(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return has_8_bits(tensor);
}
bool keeps_32_bits(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return !has_8_bits(tensor);
}

StateTensor moment(std::string_view name, bool in_8_bits) {
  return {.name = name,
          .type = in_8_bits ? StateType::uint8 : StateType::float32,
          .when = in_8_bits ? "4096 elements or more" : "fewer",
          .kept = in_8_bits ? keeps_8_bits : keeps_32_bits};
}

StateTensor scales(std::string_view name) {
  return {.name = name,
          .shape = StateShape::blocks,
          .type = StateType::float32,
          .when = "4096 elements or more",
          .kept = keeps_8_bits};
}

OptimizerRow in_8_bits(std::string_view name, std::string_view doc, std::string_view source,
                       double weight_decay) {
  return {.name = name,
          .doc = doc,
          .source = source,
          .settings = {{"learning_rate", 0.001},
                       {"beta1", 0.9},
                       {"beta2", 0.999},
                       {"epsilon", 1e-8},
                       {"weight_decay", weight_decay}},
          .state = {moment("state1", true), moment("state2", true), scales("absmax1"),
                    scales("absmax2"), moment("state1", false), moment("state2", false)},
          .shared = {{.name = "qmap1", .elements = map_entries, .kept = has_8_bits},
                     {.name = "qmap2", .elements = map_entries, .kept = has_8_bits}},
          .fused = no_temporaries,
          .usual = OptimizerImplementation::fused,
          .flops_per_element = 20,
          .executable = false};
}

bool is_large(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return element_count(tensor) >= least_paged;
}
bool is_not_large(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return element_count(tensor) < least_paged;
}
bool is_between(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return has_8_bits(tensor) && element_count(tensor) < least_paged;
}
void add_32_bits(std::vector<StateTensor>& state, std::string_view name) {
  state.push_back({.name = name,
                   .type = StateType::float32,
                   .place = StatePlace::managed,
                   .when = "100,000 elements or more",
                   .kept = is_large});
  state.push_back(
      {.name = name, .type = StateType::float32, .when = "fewer", .kept = is_not_large});
}

void add_8_bits(std::vector<StateTensor>& state, std::string_view name) {
  state.push_back({.name = name,
                   .type = StateType::uint8,
                   .place = StatePlace::managed,
                   .when = "100,000 elements or more",
                   .kept = is_large});
  state.push_back({.name = name,
                   .type = StateType::uint8,
                   .when = "from 4096 elements to that",
                   .kept = is_between});
  state.push_back(moment(name, false));
}

OptimizerRow paged(std::string_view name, std::string_view doc, std::string_view source,
                   std::vector<SettingDefault> settings, double flops) {
  return {.name = name,
          .doc = doc,
          .source = source,
          .settings = std::move(settings),
          .fused = no_temporaries,
          .usual = OptimizerImplementation::fused,
          .decouples = true,
          .flops_per_element = flops,
          .executable = false};
}

std::vector<SettingDefault> adamw_settings() {
  return {{"learning_rate", 0.001},
          {"beta1", 0.9},
          {"beta2", 0.999},
          {"epsilon", 1e-8},
          {"weight_decay", 0.01}};
}

std::vector<SettingDefault> lion_settings() {
  return {{"learning_rate", 0.0001}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.0}};
}

constexpr double adamw_flops = 20, lion_flops = 8;  // an element

}  // namespace

OptimizerRow paged_adamw_32bit() {
  OptimizerRow row = paged("paged_adamw_32bit", "AdamW with its moments in unified memory",
                           "bitsandbytes.optim.PagedAdamW32bit", adamw_settings(), adamw_flops);
  add_32_bits(row.state, "state1");
  add_32_bits(row.state, "state2");
  return row;
}

OptimizerRow paged_adamw_8bit() {
  OptimizerRow row =
      paged("paged_adamw_8bit", "AdamW with its moments in 8 bits, in unified memory",
            "bitsandbytes.optim.PagedAdamW8bit", adamw_settings(), adamw_flops);
  for (const std::string_view name : {"state1", "state2"}) add_8_bits(row.state, name);
  for (const std::string_view name : {"absmax1", "absmax2"}) row.state.push_back(scales(name));
  row.shared = {{.name = "qmap1", .elements = map_entries, .kept = has_8_bits},
                {.name = "qmap2", .elements = map_entries, .kept = has_8_bits}};
  return row;
}

OptimizerRow paged_lion_32bit() {
  OptimizerRow row = paged("paged_lion_32bit", "Lion with its moment in unified memory",
                           "bitsandbytes.optim.PagedLion32bit", lion_settings(), lion_flops);
  add_32_bits(row.state, "state1");
  return row;
}

OptimizerRow paged_lion_8bit() {
  OptimizerRow row = paged("paged_lion_8bit", "Lion with its moment in 8 bits, in unified memory",
                           "bitsandbytes.optim.PagedLion8bit", lion_settings(), lion_flops);
  add_8_bits(row.state, "state1");
  row.state.push_back(scales("absmax1"));
  row.shared = {{.name = "qmap1", .elements = map_entries, .kept = has_8_bits}};
  return row;
}

OptimizerRow adam8bit() {
  return in_8_bits("adam8bit", "Adam with its moments in 8 bits, block by block",
                   "bitsandbytes.optim.Adam8bit", 0.0);
}

OptimizerRow adamw8bit() {
  OptimizerRow row = in_8_bits("adamw8bit", "AdamW with its moments in 8 bits, block by block",
                               "bitsandbytes.optim.AdamW8bit", 0.01);
  row.decouples = true;
  return row;
}

}  // namespace stowage::optimizers
