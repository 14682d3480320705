#include "answers/exporting/pytorch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/base/grouped_digits.hpp"
#include "estimator/document/json_tree.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view format_name = "stowage-pytorch-plan";
constexpr std::int64_t known_version = 1;
constexpr std::int64_t most_samples = std::int64_t{1} << 40;

/// The members of the plan's object, each read once; the first mistake ends the reading.
class PlanMembers {
 public:
  explicit PlanMembers(const JsonValue& root) : root_(root) {}

  [[nodiscard]] Result<JsonValue> of_kind(std::string_view name, Kind kind,
                                          std::string_view wanted) const {
    const auto value = root_.find(name);
    if (!value) return root_.error(fmt::format("'{}' is missing", name));
    if (!value->is(kind)) {
      return value->error(
          fmt::format("'{}' is {}, and this is {}", name, wanted, value->describe()));
    }
    return *value;
  }
  [[nodiscard]] Result<std::string> text(std::string_view name) const {
    return of_kind(name, Kind::text, "a text").map([](JsonValue&& value) {
      return std::string(value.text());
    });
  }
  [[nodiscard]] Result<std::int64_t> count(std::string_view name, std::int64_t most) const {
    return of_kind(name, Kind::integer, "a whole number")
        .and_then([&](JsonValue&& value) -> Result<std::int64_t> {
          if (value.integer() >= 1 && value.integer() <= most) return value.integer();
          return value.error(
              fmt::format("'{}' is out of range; it is from 1 to {}", name, grouped_digits(most)));
        });
  }
  [[nodiscard]] bool is_given(std::string_view name) const {
    const auto value = root_.find(name);
    return value && !value->is(Kind::null);
  }
  [[nodiscard]] tl::unexpected<Diagnostics> mistake(std::string_view name, std::string text) const {
    return root_.find(name)->error(std::move(text));
  }

 private:
  JsonValue root_;
};

Result<void> read_step(const PlanMembers& members, PyTorchPlan& plan) {
  auto model = members.text("model");
  if (!model) return tl::unexpected(std::move(model.error()));
  const auto batch = members.count("batch", most_samples);
  if (!batch) return tl::unexpected(batch.error());
  const auto parts = members.count("micro_batches", most_samples);
  if (!parts) return tl::unexpected(parts.error());
  if (*batch % *parts != 0) {
    return members.mistake("micro_batches", fmt::format("a batch of {} has no {} equal parts",
                                                        grouped_digits(*batch), *parts));
  }
  const auto precision = members.text("precision");
  if (!precision) return tl::unexpected(precision.error());
  const auto known_precision = parse_precision(*precision);
  if (!known_precision) {
    return members.mistake("precision", fmt::format("'{}' is no precision", *precision));
  }
  const auto optimizer = members.text("optimizer");
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto known_optimizer = named_optimizer(*optimizer);
  if (!known_optimizer) {
    return members.mistake("optimizer", fmt::format("'{}' is no optimizer", *optimizer));
  }
  plan.model = *std::move(model);
  plan.batch = *batch;
  plan.micro_batches = *parts;
  plan.precision = *known_precision;
  plan.optimizer = *known_optimizer;
  return {};
}

Result<void> read_decisions(const PlanMembers& members, PyTorchPlan& plan) {
  const auto offload = members.of_kind("offload", Kind::array, "a list");
  if (!offload) return tl::unexpected(offload.error());
  plan.offloaded = static_cast<std::int64_t>(offload->size());
  const auto checkpoint = members.of_kind("checkpoint", Kind::array, "a list");
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  for (const JsonValue region : *checkpoint) {
    const auto module = region.is(Kind::object) ? region.find("module") : std::nullopt;
    if (!module || !module->is(Kind::text)) {
      return region.error("a checkpoint has a member 'module', a text");
    }
    plan.checkpointed.emplace_back(module->text());
  }
  plan.updates_on_cpu = members.is_given("optimizer_on_cpu");
  return {};
}

}  // namespace

bool is_pytorch_plan(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n{");
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  if (!text.starts_with("\"format\"")) return false;
  const std::size_t value = text.find_first_not_of(" \t\r\n:", 8);
  return value != std::string_view::npos &&
         text.substr(value).starts_with(fmt::format("\"{}\"", format_name));
}

Result<PyTorchPlan> read_pytorch_plan(SourceTextPtr source) {
  const auto tree = read_json(std::move(source));
  if (!tree) return tl::unexpected(tree.error());
  const JsonValue root = tree->root();
  if (!root.is(Kind::object)) return root.error("a plan for PyTorch is an object");
  const PlanMembers members(root);
  const auto version = members.of_kind("version", Kind::integer, "a whole number");
  if (!version) return tl::unexpected(version.error());
  if (version->integer() != known_version) {
    return version->error(fmt::format("version {} of plans for PyTorch is not known; {} is",
                                      version->integer(), known_version));
  }
  PyTorchPlan plan;
  if (auto read = read_step(members, plan); !read) return tl::unexpected(std::move(read.error()));
  if (auto read = read_decisions(members, plan); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  if (members.is_given("gpu")) {
    const auto gpu = members.of_kind("gpu", Kind::object, "an object");
    if (!gpu) return tl::unexpected(gpu.error());
    const auto name = gpu->find("name");
    if (name && name->is(Kind::text)) plan.gpu = std::string(name->text());
  }
  return plan;
}

EngineStep engine_step(const PyTorchPlan& plan) {
  EngineStep step{.model = plan.model,
                  .source = plan.model,
                  .batch = plan.batch / plan.micro_batches,
                  .accumulation = plan.micro_batches,
                  .precision = plan.precision};
  step.lowering.kernels = KernelSet::pytorch;
  step.lowering.optimizer = plan.optimizer;
  step.stated = {{"batch", std::to_string(step.batch)}};
  if (step.accumulation > 1) {
    step.stated.push_back({"accumulation", std::to_string(step.accumulation)});
  }
  step.stated.push_back({"precision", std::string(to_string(plan.precision))});
  step.stated.push_back({"optimizer", optimizer_text(plan.optimizer)});
  return step;
}

std::vector<std::string> unexpressed_decisions(const PyTorchPlan& plan) {
  std::vector<std::string> lines;
  if (plan.offloaded > 0) {
    lines.push_back(fmt::format("{} saved storages that leave the GPU", plan.offloaded));
  }
  if (!plan.checkpointed.empty()) {
    lines.push_back(fmt::format("{} checkpointed modules: {}{}", plan.checkpointed.size(),
                                plan.checkpointed.front(),
                                plan.checkpointed.size() > 1 ? " and others" : ""));
  }
  if (plan.updates_on_cpu) lines.emplace_back("updates on the CPU");
  return lines;
}

}  // namespace stowage
