#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"
#include "planner/plan/plan_fields.hpp"
#include "planner/plan/plan_header.hpp"
#include "planner/plan/section.hpp"

namespace stowage {
namespace {

/// Reads the items of a list, each a mapping; reports a node that is not a list.
template <typename Read>
void read_list(const YamlNode* list, std::string_view name, Mistakes& mistakes, const Read& read) {
  if (list == nullptr) return;
  if (!list->is_sequence()) {
    mistakes.error(list->mark, fmt::format("'{}' must be a list, not {}", name, describe(*list)));
    return;
  }
  for (const YamlNode* item : list->items) read(*item);
}

void read_texts(const YamlNode& node, std::string_view name, Mistakes& mistakes,
                std::vector<std::string>& texts) {
  if (!node.is_sequence()) {
    mistakes.error(node.mark, fmt::format("'{}' must be a list, not {}", name, describe(node)));
    return;
  }
  for (const YamlNode* item : node.items) {
    if (item->is_scalar()) {
      texts.push_back(item->text);
    } else {
      mistakes.error(item->mark, fmt::format("'{}' holds texts, not {}", name, describe(*item)));
    }
  }
}

void read_card_record(const YamlNode& node, Mistakes& mistakes, Card& card) {
  Section section(node, "'card'", mistakes);
  card_fields(section, card);
  if (section.find("memory_bytes", Presence::optional) != nullptr) {
    section.bytes("memory_bytes", card.memory);
  }
  if (section.find("professional", Presence::optional) != nullptr) {
    section.boolean("professional", card.professional);
  }
  read_list(section.find("observed_totals", Presence::optional), "observed_totals", mistakes,
            [&](const YamlNode& item) {
              Section fields(item, "an observed total", mistakes);
              observed_total_fields(fields, card.observed_totals.emplace_back());
              fields.finish();
            });
  if (const YamlNode* by_rule = section.find("by_rule", Presence::optional)) {
    read_texts(*by_rule, "by_rule", mistakes, card.by_rule);
  }
  if (const YamlNode* calibrated = section.find("calibrated", Presence::optional)) {
    read_texts(*calibrated, "calibrated", mistakes, card.calibrated);
  }
  read_list(section.find("measurements", Presence::optional), "measurements", mistakes,
            [&](const YamlNode& item) {
              Section fields(item, "a measurement", mistakes);
              measurement_fields(fields, card.measurements.emplace_back());
              fields.finish();
            });
  section.finish();
}

void read_fine_tuning_texts(Section& section, Mistakes& mistakes, FineTuningTexts& texts) {
  const YamlNode* node = section.find("fine_tuning", Presence::optional);
  if (node == nullptr) return;
  Section fields(*node, "'fine_tuning'", mistakes);
  const auto read = [&](std::string_view key, std::optional<std::string>& into) {
    if (fields.find(key, Presence::optional) == nullptr) return;
    std::string text;
    fields.text(key, text);
    into = std::move(text);
  };
  read("lora", texts.lora);
  read("base", texts.base);
  read("checkpoint", texts.checkpoint);
  read("layer_dtype", texts.layer_dtype);
  read("chunked_loss", texts.chunked_loss);
  read("offload_activations", texts.offload_activations);
  read("optimizer_in_backward", texts.optimizer_in_backward);
  fields.finish();
}

void read_model_options(Section& section, Mistakes& mistakes, ModelOptions& options) {
  if (section.find("seq", Presence::optional) != nullptr) {
    std::int64_t seq = 0;
    section.integer("seq", 1, most_plan_bytes, seq);
    options.seq = seq;
  }
  read_fine_tuning_texts(section, mistakes, options.fine_tuning);
  if (section.find("variant", Presence::optional) != nullptr) section.text("variant", options.name);
  if (const YamlNode* precision = section.find("precision", Presence::optional)) {
    options.precision = parse_precision(precision->is_scalar() ? precision->text : std::string());
    if (!options.precision) {
      mistakes.error(precision->mark,
                     fmt::format("'precision' must be one of {}, not {}",
                                 fmt::join(precision_names(), ", "), describe(*precision)));
    }
  }
  const YamlNode* set = section.find("set", Presence::optional);
  if (set == nullptr) return;
  if (!set->is_mapping()) {
    mistakes.error(set->mark, fmt::format("'set' must be a mapping, not {}", describe(*set)));
    return;
  }
  for (std::size_t i = 0; i < set->entry_count(); ++i) {
    if (set->key(i).is_scalar() && set->value(i).is_scalar()) {
      options.arguments[set->key(i).text] = set->value(i).text;
    } else {
      mistakes.error(set->key(i).mark, "'set' holds pairs of a name and a text");
    }
  }
}

/// Reads the machine. Processors and links refer to memories by their names.
class MachineReader {
 public:
  MachineReader(Mistakes& mistakes, Machine& machine) : mistakes_(mistakes), machine_(machine) {}

  void read(const YamlNode& node) {
    machine_ = {};
    Section section(node, "'machine'", mistakes_);
    const YamlNode* processors = section.find("processors");
    const YamlNode* memories = section.find("memories");
    const YamlNode* links = section.find("links");
    section.word("measured_on", machine_.measured_on, Presence::optional);
    section.finish();
    read_list(memories, "memories", mistakes_, [&](const YamlNode& item) {
      Section fields(item, "a memory", mistakes_);
      Memory memory;
      memory_fields(fields, memory);
      fields.finish();
      add(item, std::move(memory), machine_.memories);
    });
    read_list(processors, "processors", mistakes_, [&](const YamlNode& item) {
      Section fields(item, "a processor", mistakes_);
      Processor processor;
      processor_fields(fields, processor);
      processor.memory = memory(fields, "memory");
      if (const YamlNode* kernels = fields.find("kernels", Presence::optional)) {
        processor.kernels = read_kernels(*kernels);
      }
      fields.finish();
      add(item, std::move(processor), machine_.processors);
    });
    read_list(links, "links", mistakes_, [&](const YamlNode& item) {
      Section fields(item, "a link", mistakes_);
      Link link;
      link_fields(fields, link);
      link.from = memory(fields, "from");
      link.to = memory(fields, "to");
      fields.finish();
      add(item, std::move(link), machine_.links);
    });
  }

 private:
  template <typename Row>
  void add(const YamlNode& item, Row row, std::vector<Row>& rows) {
    constexpr std::size_t most_rows = 1000;
    for (const Row& other : rows) {
      if (other.name != row.name) continue;
      mistakes_.error(item.mark, fmt::format("'{}' is there twice", row.name));
    }
    if (rows.size() == most_rows) {
      mistakes_.error(item.mark, "more than 1000 rows");
      return;
    }
    rows.push_back(std::move(row));
  }

  KernelRates read_kernels(const YamlNode& node) {
    KernelRates rates;
    Section fields(node, "'kernels'", mistakes_);
    kernel_fields(fields, rates);
    if (const YamlNode* formats = fields.find("formats")) {
      Section rows(*formats, "'formats'", mistakes_);
      for (const MathFormat format : all_math_formats) {
        rows.real(to_string(format), rates.formats[static_cast<std::size_t>(format)]);
      }
      rows.finish();
    }
    if (const YamlNode* kinds = fields.find("kinds")) {
      Section rows(*kinds, "'kinds'", mistakes_);
      for (const KernelKind kind : all_kernel_kinds) {
        const YamlNode* row = rows.find(to_string(kind), Presence::optional);
        if (row == nullptr) continue;
        Section share(*row, "a kind", mistakes_);
        kind_fields(share, rates.kinds[static_cast<std::size_t>(kind)]);
        share.finish();
      }
      rows.finish();
    }
    fields.finish();
    return rates;
  }

  MemoryId memory(Section& fields, std::string_view key) {
    const YamlNode* value = fields.find(key);
    if (value == nullptr) return {};
    for (std::size_t i = 0; i < machine_.memories.size(); ++i) {
      if (value->is_scalar() && machine_.memories[i].name == value->text) return MemoryId::of(i);
    }
    fields.refuse(*value, key, "the name of one of the memories");
    return {};
  }

  Mistakes& mistakes_;
  Machine& machine_;
};

ServingSettings read_served(const YamlNode& node, Mistakes& mistakes) {
  ServingSettings settings;
  Section section(node, "'serving'", mistakes);
  const auto count = [&](std::string_view key, std::int64_t& into) {
    section.integer(key, 1, most_plan_bytes, into);
  };
  count("context_length", settings.context_length);
  count("users", settings.users);
  section.choice("cache", std::array{CacheKind::paged, CacheKind::static_}, settings.cache);
  section.choice("kv_dtype",
                 std::array{CacheFormat::model, CacheFormat::fp8, CacheFormat::int8,
                            CacheFormat::fp16, CacheFormat::bf16, CacheFormat::fp32},
                 settings.format);
  count("kv_block", settings.block);
  if (section.find("prefill_chunk", Presence::optional) != nullptr) {
    count("prefill_chunk", settings.prefill_chunk.emplace());
  }
  section.finish();
  return settings;
}

void read_inputs(const YamlNode& node, Mistakes& mistakes, PlanHeader& header) {
  PlanInputs& inputs = header.plan.inputs;
  Section section(node, "'inputs'", mistakes);
  section.text("stowage_version", inputs.stowage_version);
  section.text("model_name", inputs.model_name);
  section.text("model_hash", inputs.model_hash);
  read_model_options(section, mistakes, inputs.model_options);
  section.text("step_hash", inputs.step_hash);
  section.integer("batch", 1, most_plan_bytes, header.batch.samples);
  if (const YamlNode* batch = section.find("batch", Presence::optional))
    header.batch_mark = batch->mark;
  if (const YamlNode* serving = section.find("serving", Presence::optional)) {
    inputs.serving = read_served(*serving, mistakes);
  }
  if (const YamlNode* card = section.find("card")) read_card_record(*card, mistakes, inputs.card);
  if (const YamlNode* host = section.find("host")) {
    Section fields(*host, "'host'", mistakes);
    host_fields(fields, inputs.host);
    fields.finish();
  }
  section.bytes("available_bytes", inputs.available);
  section.bytes("budget_bytes", inputs.budget.bytes);
  section.finish();
}

/// A plan of another version is not read any further.
bool check_version(const YamlNode& root, Mistakes& mistakes) {
  const YamlNode* version = root.is_mapping() ? root.find("stowage_plan") : nullptr;
  if (version == nullptr) {
    mistakes.error(root.mark, "this is not a plan: it lacks 'stowage_plan'");
    return false;
  }
  if (!version->is_scalar() || version->text != "2") {
    mistakes.error(version->mark,
                   fmt::format("this program reads plans of format 2, not {}", describe(*version)));
    return false;
  }
  return true;
}

void read_levers(const YamlNode& node, Mistakes& mistakes, Levers& levers) {
  const auto read = node.is_scalar() ? parse_levers(node.text) : Result<Levers>(Levers{});
  if (node.is_scalar() && read) {
    levers = *read;
    return;
  }
  mistakes.error(node.mark,
                 read ? fmt::format("'placement' must be a text, not {}", describe(node))
                      : read.error().front().message,
                 read ? "" : read.error().front().hint);
}

/// Plans of earlier programs lack the key. Of these the plan of fewest bytes is known by its name.
void read_minimised(Section& section, Plan& plan) {
  if (section.find("minimised", Presence::optional) != nullptr) {
    section.choice("minimised", std::array{Minimised::seconds, Minimised::bytes}, plan.minimised);
  } else if (plan.name == "min-pcie" && plan.pinned == Pinned::all_nodes) {
    plan.minimised = Minimised::bytes;
  }
}

}  // namespace

Result<PlanHeader> read_plan_header(SourceTextPtr source) {
  const auto document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  Mistakes mistakes(source);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  PlanHeader header;
  Plan& plan = header.plan;
  if (check_version(*document->root, mistakes)) {
    Section section(*document->root, "the plan", mistakes);
    section.find("stowage_plan");
    section.text("name", plan.name);
    section.choice("pinned", std::array{Pinned::nothing, Pinned::computation, Pinned::all_nodes},
                   plan.pinned);
    read_minimised(section, plan);
    if (const YamlNode* placement = section.find("placement", Presence::optional)) {
      read_levers(*placement, mistakes, plan.levers);
    }
    if (const YamlNode* inputs = section.find("inputs")) read_inputs(*inputs, mistakes, header);
    if (const YamlNode* machine = section.find("machine")) {
      MachineReader(mistakes, plan.machine).read(*machine);
    }
    if (const YamlNode* totals = section.find("totals")) {
      Section fields(*totals, "'totals'", mistakes);
      total_fields(fields, plan.totals);
      fields.finish();
    }
    if (const YamlNode* pins = section.find("pins", Presence::optional)) {
      read_list(pins, "pins", mistakes, [&](const YamlNode& item) {
        Section fields(item, "a pin", mistakes);
        pin_reason_fields(fields, plan.pins.reasons.emplace_back());
        fields.finish();
      });
    }
    if (const YamlNode* remarks = section.find("remarks", Presence::optional)) {
      read_texts(*remarks, "remarks", mistakes, plan.remarks);
    }
    if (section.find("model", Presence::optional) != nullptr)
      section.text("model", plan.inputs.model_text);
    section.finish();
  }
  if (mistakes.any_errors()) return tl::unexpected(std::move(mistakes).in_order());
  return header;
}

}  // namespace stowage
