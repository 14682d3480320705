#include "estimator/document/write_settings.hpp"

#include "estimator/document/words.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage::step_text {

namespace {

void put_optimizer(Text& text, const OptimizerSettings& optimizer) {
  put(text, "{{\"name\": {}", json_text(optimizer.name));
  for (const OptimizerSetting& setting : setting_table()) {
    const AttributeValue value = value_of(optimizer, setting);
    const auto* real = std::get_if<double>(&value);
    put(text, ", {}: {}", json_text(setting.spec.name),
        real != nullptr ? written(*real) : to_string(value));
  }
  put(text, ", \"implementation\": {}, \"master_weights\": {}}}",
      json_text(to_string(optimizer.implementation)),
      json_text(to_string(optimizer.master_weights)));
}

void put_sharding(Text& text, const DataParallel& parallel) {
  const FullyShard& fsdp = parallel.fsdp;
  if (fsdp.on) {
    put(text,
        ",\n\"fsdp\": {{\"wrap\": \"{}\", \"reshard_after_forward\": {}, \"reshard_among\": {}, "
        "\"forward_prefetch\": {}, \"backward_prefetch\": {}",
        fsdp.by_block ? "blocks" : "root", fsdp.reshards_after_forward, fsdp.reshards_among,
        fsdp.forward_prefetch, fsdp.backward_prefetch);
    if (fsdp.reduce_type) {
      put(text, ", \"reduce_dtype\": {}", json_text(to_string(*fsdp.reduce_type)));
    }
    if (fsdp.output_type) {
      put(text, ", \"output_dtype\": {}", json_text(to_string(*fsdp.output_type)));
    }
    put(text, "}}");
  }
  if (parallel.offload != Offload::none) {
    put(text, ",\n\"offload\": {}", json_text(to_string(parallel.offload)));
  }
  if (!parallel.pinned) put(text, ",\n\"pinned\": false");
}

}  // namespace

void put_settings(Text& text, const LoweringSettings& settings) {
  put(text, ",\n\"settings\": {{\n\"kernels\": {},\n\"mode\": {},\n\"optimizer\": ",
      json_text(to_string(settings.kernels)), json_text(to_string(settings.mode)));
  put_optimizer(text, settings.optimizer);
  const StepSettings& step = settings.step;
  put(text,
      ",\n\"micro_batches\": {},\n\"zero_grad\": {},\n\"augment\": {},\n\"prefetch\": {},\n"
      "\"layout\": {},\n\"compute_capability\": {},\n",
      settings.micro_batches, json_text(to_string(step.zero_grad)), step.augment, step.prefetch,
      json_text(to_string(step.layout)), written(settings.compute_capability));
  put(text,
      "\"tf32\": {},\n\"deterministic\": {},\n\"cudnn_benchmark\": {},\n\"gpus\": {},\n"
      "\"zero\": {}",
      settings.convolutions.tf32, settings.convolutions.deterministic,
      settings.convolutions.benchmark, settings.parallel.gpus, settings.parallel.zero);
  put_sharding(text, settings.parallel);
  if (!settings.recomputed.empty()) {
    put(text, ",\n\"recomputed\": ");
    put_list(text, settings.recomputed.size(), [&](std::size_t i) {
      const RecomputedValue& row = settings.recomputed[i];
      put(text, "\n[{}", json_text(row.value));
      if (!row.before.empty()) put(text, ",{}", json_text(row.before));
      put(text, "]");
    });
  }
  if (!settings.efficient_takes_groups) put(text, ",\n\"efficient_takes_groups\": false");
  if (settings.early_updates) put(text, ",\n\"early_updates\": true");
  if (settings.in_place) put(text, ",\n\"in_place\": true");
  if (!settings.order.empty()) {
    put(text, ",\n\"order\": ");
    put_list(text, settings.order.size(), [&](std::size_t i) {
      const NodeRun& run = settings.order[i];
      put(text, "\n[{}", json_text(run.first));
      if (run.last != run.first) put(text, ",{}", json_text(run.last));
      put(text, "]");
    });
  }
  put(text, "}}");
}

}  // namespace stowage::step_text
