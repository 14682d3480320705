#include "cli/options/sharding_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>

#include "estimator/base/cure.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

namespace {

constexpr std::string_view fsdp_settings =
    "wrap=, reshard=, reduce=, output=, forward-prefetch= and backward-prefetch=";

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int> count_of(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

/// Reads one text of settings, "wrap=root,reshard=false", into the fields that they name.
class FsdpReader {
 public:
  explicit FsdpReader(FullyShard& fsdp) : fsdp_(fsdp) {}

  /// What is wrong with the setting; empty: nothing.
  [[nodiscard]] std::string take(std::string_view part) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    if (std::ranges::find(seen_, name) != seen_.end()) {
      return fmt::format("--fsdp says '{}' twice", shown(name));
    }
    seen_.push_back(name);
    if (name == "wrap") return take_wrap(value);
    if (name == "reshard") return take_reshard(value);
    if (name == "reduce") return take_type(name, value, fsdp_.reduce_type);
    if (name == "output") return take_type(name, value, fsdp_.output_type);
    if (name == "forward-prefetch") return take_blocks(name, value, fsdp_.forward_prefetch);
    if (name == "backward-prefetch") return take_blocks(name, value, fsdp_.backward_prefetch);
    return fmt::format("--fsdp has no setting '{}'; it has {}", shown(part), fsdp_settings);
  }

 private:
  static std::string_view shown(std::string_view text) { return text.substr(0, 60); }

  std::string take_wrap(std::string_view value) {
    fsdp_.by_block = value == "blocks";
    if (fsdp_.by_block || value == "root") return {};
    return fmt::format("--fsdp wrap= is blocks or root, not '{}'", shown(value));
  }

  std::string take_reshard(std::string_view value) {
    fsdp_.reshards_after_forward = value != "false";
    fsdp_.reshards_among = 0;
    if (value == "true" || value == "false") return {};
    const auto among = count_of(value, 2, most_gpus);
    if (!among) {
      return fmt::format("--fsdp reshard= is true, false or a number of GPUs above 1, not '{}'",
                         shown(value));
    }
    fsdp_.reshards_among = *among;
    return {};
  }

  static std::string take_type(std::string_view name, std::string_view value,
                               std::optional<DataType>& type) {
    type = parse_format_word(value);
    if (type) return {};
    return fmt::format("--fsdp {}= is {}, not '{}'", name, format_words_text, shown(value));
  }

  static std::string take_blocks(std::string_view name, std::string_view value, int& blocks) {
    const auto count = count_of(value, 0, most_prefetched_blocks);
    if (!count) {
      return fmt::format("--fsdp {}= is a number of blocks from 0 to {}, not '{}'", name,
                         most_prefetched_blocks, shown(value));
    }
    blocks = *count;
    return {};
  }

  FullyShard& fsdp_;
  std::vector<std::string_view> seen_;
};

std::string take_offload(std::string_view part, DataParallel& parallel) {
  for (const Offload offload : {Offload::optimizer, Offload::parameters, Offload::all}) {
    if (part != to_string(offload)) continue;
    parallel.offload = offload;
    return {};
  }
  if (part == "pin=true" || part == "pin=false") {
    parallel.pinned = part == "pin=true";
    return {};
  }
  return fmt::format("--offload is optimizer, parameters or all, and pin=false beside it, not '{}'",
                     part.substr(0, 60));
}

}  // namespace

const std::vector<OptionSpec>& sharding_options() {
  using enum OptionType;
  using enum OptionGroup;
  static const std::vector<OptionSpec> options{
      {.name = "fsdp",
       .type = text,
       .group = training,
       .value = "SETTINGS",
       .help = "PyTorch's fully_shard, a group for each repeated block: "
               "reshard=false, wrap=root, reduce=fp32, output=fp32, forward-prefetch=N",
       .default_note = "not sharded; alone: fully_shard's defaults",
       .alone = "default",
       .words = {"default", "wrap=", "reshard=", "reduce=", "output=", "forward-prefetch=",
                 "backward-prefetch="}},
      {.name = "offload",
       .type = text,
       .group = training,
       .value = "WHAT",
       .help =
           "with --zero or --fsdp, what lies in the CPU's memory: optimizer, parameters or all; "
           "pin=false: not page-locked",
       .default_note = "nothing"}};
  return options;
}

Result<DataParallel> read_sharding(const Arguments& arguments) {
  DataParallel parallel{.gpus = static_cast<int>(arguments.integer("gpus").value_or(1)),
                        .zero = static_cast<int>(arguments.integer("zero").value_or(0))};
  Diagnostics mistakes;
  const auto note = [&](const std::string& mistake) {
    if (!mistake.empty()) mistakes.push_back(command_line_error(mistake));
  };
  if (const auto settings = arguments.text("fsdp")) {
    parallel.fsdp.on = true;
    FsdpReader reader(parallel.fsdp);
    for (const std::string_view part : parts_of(*settings)) {
      if (part != "default") note(reader.take(part));
    }
    if (!arguments.given("gpus")) {
      mistakes.push_back(
          command_line_error("--fsdp shards a model among GPUs, and their number "
                             "is not said",
                             hint_of(Cure::number_of_gpus)));
    }
  }
  if (const auto offload = arguments.text("offload")) {
    for (const std::string_view part : parts_of(*offload)) note(take_offload(part, parallel));
    if (parallel.offload == Offload::none && mistakes.empty()) {
      note(
          "--offload says how memory is pinned, and not what lies there: optimizer, parameters or "
          "all");
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return parallel;
}

}  // namespace stowage
