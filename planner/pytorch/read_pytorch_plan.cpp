#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "estimator/document/fields.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

constexpr std::int64_t largest_batch = 1'000'000'000;

/// "batch", "2*batch", "batch+1", "2*batch-3".
std::optional<Affine> parse_dimension(std::string_view text) {
  Affine dimension{0, 1};
  const auto number = [&text](std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() && value >= -largest_number && value <= largest_number;
  };
  const auto word = [&text](std::string_view expected) {
    if (!text.starts_with(expected)) return false;
    text.remove_prefix(expected.size());
    return true;
  };
  if (!text.starts_with('b') && !(number(dimension.slope) && word("*"))) return std::nullopt;
  if (!word("batch")) return std::nullopt;
  if (text.empty()) return dimension;
  if (!text.starts_with('-') && !word("+")) return std::nullopt;
  if (!number(dimension.constant) || !text.empty()) return std::nullopt;
  return dimension;
}

Affine dimension_of(const JsonValue& value) {
  if (!value.is(Kind::text)) return integer_of(value, "a dimension");
  const auto dimension = parse_dimension(value.text());
  if (!dimension) refuse(value, "a dimension is a number, \"batch\" or as \"2*batch+1\"");
  return *dimension;
}

std::string key_of(const JsonValue& value) { return name_of(value, "a saved tensor's key"); }

class PytorchPlanReader {
 public:
  explicit PytorchPlanReader(const JsonValue& root) : members_(root, "the plan") {}

  PytorchPlan run() {
    check_version();
    const std::string by = text_of(members_.required("written_by"), "'written_by'");
    plan_.stowage_version = by.starts_with("stowage ") ? by.substr(8) : by;
    plan_.model = text_of(members_.required("model"), "the model's name");
    const JsonValue names = members_.required("names");
    const std::string whose = text_of(names, "'names'");
    if (whose != "recorded" && whose != "described") {
      refuse(names, "'names' is \"recorded\" or \"described\"");
    }
    plan_.names_are_recorded = whose == "recorded";
    const JsonValue whole = members_.required("batch");
    plan_.batch = integer_of(whole, "'batch'", 1, largest_batch);
    plan_.micro_batches =
        integer_of(members_.required("micro_batches"), "'micro_batches'", 1, largest_batch);
    if (plan_.batch % plan_.micro_batches != 0) {
      refuse(whole, fmt::format("{} micro-batches cannot share a batch of {} equally",
                                plan_.micro_batches, plan_.batch));
    }
    plan_.batch /= plan_.micro_batches;
    if (const auto mode = members_.find("mode")) {
      const std::string word = text_of(*mode, "'mode'");
      if (word != "train" && word != "inference") {
        refuse(*mode, "'mode' is \"train\" or \"inference\"");
      }
      plan_.trains = word == "train";
    }
    plan_.precision = text_of(members_.required("precision"), "'precision'");
    plan_.optimizer = text_of(members_.required("optimizer"), "'optimizer'");
    plan_.step_hash = text_of(members_.required("step"), "'step'");
    Members gpu(members_.required("gpu"), "'gpu'");
    plan_.card = text_of(gpu.required("name"), "the GPU's name");
    plan_.available = bytes_of(gpu, "available_bytes");
    gpu.finish();
    plan_.pytorch = text_of(members_.required("pytorch"), "'pytorch'");
    if (const auto question = members_.find("question")) plan_.question = question_of(*question);
    if (const auto allocator = members_.find("allocator")) read_allocator(*allocator);
    Members passes(members_.required("passes"), "'passes'");
    plan_.saved = integer_of(passes.required("saved"), "the number of saved tensors");
    passes.finish();
    read_offload(members_.required("offload"));
    read_checkpoint(members_.required("checkpoint"));
    if (const auto chunks = members_.find("chunks")) read_chunks(*chunks);
    if (const auto stream = members_.find("stream")) read_stream(*stream);
    if (const auto optimizer = members_.find("optimizer_on_cpu")) read_host_updates(*optimizer);
    if (const auto updates = members_.find("updates")) read_updates(*updates);
    read_totals(members_.required("totals"));
    members_.finish();
    return std::move(plan_);
  }

 private:
  void check_version() {
    const JsonValue format = members_.required("format");
    if (!format.is(Kind::text) || format.text() != pytorch_plan_format) {
      refuse(format, fmt::format("'format' must be \"{}\"", pytorch_plan_format));
    }
    const JsonValue version = members_.required("version");
    if (!version.is(Kind::integer) || version.integer() != 1) {
      refuse(version, fmt::format("this program reads version 1 of plans for PyTorch, not {}",
                                  version.describe()));
    }
  }

  static Bytes bytes_of(Members& members, std::string_view name) {
    return Bytes(integer_of(members.required(name), name));
  }

  void read_allocator(const JsonValue& value) {
    const std::string conf = text_of(value, "'allocator'");
    if (conf != expandable_conf) {
      refuse(value, fmt::format("'allocator' is \"{}\", where it stands", expandable_conf));
    }
    plan_.expandable_segments = true;
  }

  static PlannedQuestion question_of(const JsonValue& value) {
    Members members(value, "'question'");
    PlannedQuestion question{.model = name_of(members.required("model"), "the question's model")};
    const JsonValue settings = members.required("settings");
    expect(settings, Kind::object, "the question's settings");
    for (auto at = settings.begin(); !(at == settings.end()); ++at) {
      std::vector<std::string>& values = question.settings[name_of(*at, "a setting's name")];
      ++at;
      const JsonValue list = *at;
      expect(list, Kind::array, "a setting's values");
      for (auto one = list.begin(); !(one == list.end()); ++one) {
        values.push_back(text_of(*one, "a setting's value"));
      }
    }
    members.finish();
    return question;
  }

  void read_offload(const JsonValue& list) {
    expect(list, Kind::array, "'offload'");
    for (auto at = list.begin(); !(at == list.end()); ++at) plan_.offload.push_back(storage(*at));
    try {
      (void)plan_.offloaded_bytes();
    } catch (const ArithmeticOverflow&) {
      refuse(list, "the offloaded storages have more bytes than 64 bits can say");
    }
  }

  OffloadedStorage storage(const JsonValue& value) {
    Members members(value, "an offloaded storage");
    OffloadedStorage storage;
    const JsonValue saved = members.required("saved");
    expect(saved, Kind::array, "a storage's saved tensors");
    if (saved.size() == 0) refuse(saved, "an offloaded storage has at least one saved tensor");
    for (auto at = saved.begin(); !(at == saved.end()); ++at) storage.saved.push_back(name(*at));
    const JsonValue bytes = members.required("bytes");
    storage.bytes = affine_of(bytes, "a storage's bytes");
    const double at_batch = storage.bytes.real_at(plan_.batch);
    if (at_batch < 0 || at_batch > static_cast<double>(largest_number)) {
      refuse(bytes, fmt::format("a storage has no {:.0f} bytes, as it would at a batch of {}",
                                at_batch, plan_.batch));
    }
    const JsonValue start = members.required("start");
    storage.start = key_of(start);
    if (std::ranges::find(storage.saved, storage.start, &SavedName::key) == storage.saved.end()) {
      refuse(start, fmt::format("'{}' is none of the storage's own saved tensors", storage.start));
    }
    if (const auto release = members.find("release")) storage.release = key_of(*release);
    if (const auto fetch = members.find("fetch")) storage.fetch = key_of(*fetch);
    members.finish();
    return storage;
  }

  SavedName name(const JsonValue& value) {
    Members members(value, "a saved tensor");
    SavedName name;
    const JsonValue key = members.required("key");
    name.key = key_of(key);
    if (!keys_.insert(name.key).second) {
      refuse(key, fmt::format("'{}' is in two storages", name.key));
    }
    const JsonValue type = members.required("dtype");
    const auto parsed = parse_data_type(text_of(type, "a tensor's dtype"));
    if (!parsed) refuse(type, fmt::format("no dtype is called '{}'", type.text()));
    name.type = *parsed;
    name.shape = shape_of(members.required("shape"));
    members.finish();
    return name;
  }

  void read_checkpoint(const JsonValue& list) {
    expect(list, Kind::array, "'checkpoint'");
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      Members members(*at, "a checkpointed module");
      plan_.checkpoint.push_back(name_of(members.required("module"), "a module's path"));
      members.finish();
    }
  }

  static Shape shape_of(const JsonValue& list) {
    expect(list, Kind::array, "a tensor's shape");
    Shape shape;
    for (auto at = list.begin(); !(at == list.end()); ++at) shape.push_back(dimension_of(*at));
    return shape;
  }

  void read_chunks(const JsonValue& value) {
    Members members(value, "'chunks'");
    InferenceChunks chunks;
    const JsonValue parts = members.required("parts");
    chunks.parts = integer_of(parts, "the number of parts", 2, largest_batch);
    if (plan_.batch % chunks.parts != 0) {
      refuse(parts,
             fmt::format("{} parts cannot share a batch of {} equally", chunks.parts, plan_.batch));
    }
    const JsonValue inputs = members.required("inputs");
    expect(inputs, Kind::array, "the inputs' shapes");
    for (auto at = inputs.begin(); !(at == inputs.end()); ++at) {
      chunks.inputs.push_back(shape_of(*at));
    }
    chunks.output = shape_of(members.required("output"));
    members.finish();
    plan_.chunks = std::move(chunks);
  }

  void read_stream(const JsonValue& list) {
    expect(list, Kind::array, "'stream'");
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      Members members(*at, "a streamed module");
      StreamedModule streamed;
      streamed.module = name_of(members.required("module"), "a module's path");
      const JsonValue names = members.required("parameters");
      expect(names, Kind::array, "a streamed module's parameters");
      if (names.size() == 0) refuse(names, "a streamed module has at least one parameter");
      for (auto name = names.begin(); !(name == names.end()); ++name) {
        streamed.parameters.push_back(name_of(*name, "a parameter's name"));
        if (parameters_.insert(streamed.parameters.back()).second) continue;
        refuse(*name, fmt::format("'{}' is streamed twice", streamed.parameters.back()));
      }
      streamed.bytes = bytes_of(members, "bytes");
      const JsonValue uploads = members.required("uploads");
      streamed.uploads = static_cast<int>(integer_of(uploads, "'uploads'", 1, 2));
      members.finish();
      plan_.stream.push_back(std::move(streamed));
    }
  }

  void read_host_updates(const JsonValue& value) {
    Members members(value, "'optimizer_on_cpu'");
    constexpr auto in_flight = static_cast<std::int64_t>(gradients_in_flight);
    (void)integer_of(members.required("gradients_in_flight"), "'gradients_in_flight'", in_flight,
                     in_flight);
    if (const auto names = members.find("parameters")) {
      expect(*names, Kind::array, "the parameters that are updated on the CPU");
      if (names->size() == 0) refuse(*names, "at least one parameter is updated on the CPU");
      std::set<std::string> updated;
      for (auto name = names->begin(); !(name == names->end()); ++name) {
        plan_.cpu_parameters.push_back(name_of(*name, "a parameter's name"));
        if (updated.insert(plan_.cpu_parameters.back()).second) continue;
        refuse(*name, fmt::format("'{}' is updated twice", plan_.cpu_parameters.back()));
      }
    }
    members.finish();
    plan_.optimizer_on_cpu = true;
  }

  void read_updates(const JsonValue& value) {
    const std::string word = text_of(value, "'updates'");
    if (word != early_updates_word) {
      refuse(value, fmt::format("'updates' is \"{}\", where it stands", early_updates_word));
    }
    if (plan_.micro_batches > 1) {
      refuse(value, "updates cannot be early where the gradients of micro-batches add up");
    }
    plan_.early_updates = true;
  }

  static double seconds_of(const JsonValue& value, std::string_view what) {
    const double seconds = real_of(value, what);
    if (std::isfinite(seconds) && seconds >= 0) return seconds;
    refuse(value, fmt::format("{} is no time", what));
  }

  void read_totals(const JsonValue& value) {
    Members members(value, "'totals'");
    PytorchTotals& totals = plan_.totals;
    totals.peak_allocated = bytes_of(members, "peak_allocated_bytes");
    totals.peak_reserved = bytes_of(members, "peak_reserved_bytes");
    totals.device_bytes = bytes_of(members, "device_bytes");
    totals.to_host = bytes_of(members, "to_host_bytes");
    totals.from_host = bytes_of(members, "from_host_bytes");
    totals.pinned = bytes_of(members, "pinned_bytes");
    totals.step_seconds = seconds_of(members.required("step_seconds"), "'step_seconds'");
    totals.all_gpu_step_seconds =
        seconds_of(members.required("all_gpu_step_seconds"), "'all_gpu_step_seconds'");
    totals.recomputed_seconds =
        seconds_of(members.required("recomputed_seconds"), "'recomputed_seconds'");
    totals.pcie_lower_bound = bytes_of(members, "pcie_lower_bound_bytes");
    if (const auto bound = members.find("step_lower_bound_seconds")) {
      totals.step_lower_bound_seconds = seconds_of(*bound, "'step_lower_bound_seconds'");
    }
    members.finish();
  }

  Members members_;
  PytorchPlan plan_;
  std::set<std::string> keys_, parameters_;
};

}  // namespace

bool is_pytorch_plan(std::string_view text) {
  const std::string_view beginning = text.substr(0, 4096);
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || beginning[first] != '{') return false;
  return beginning.find(fmt::format("\"{}\"", pytorch_plan_format)) != std::string_view::npos;
}

Result<PytorchPlan> read_pytorch_plan(SourceTextPtr source) {
  auto tree = read_json(std::move(source));
  if (!tree) return tl::unexpected(std::move(tree.error()));
  try {
    return PytorchPlanReader(tree->root()).run();
  } catch (const Refusal& refusal) {
    return tl::unexpected(refusal.diagnostics);
  }
}

}  // namespace stowage
