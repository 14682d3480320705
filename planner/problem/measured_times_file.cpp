#include "planner/problem/measured_times_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "estimator/text/field_reader.hpp"

namespace stowage {

namespace {

constexpr Presence may_lack = Presence::optional;
constexpr std::size_t most_calls = 100'000;
constexpr double most_seconds = 1e6;

class TimesReader {
 public:
  TimesReader(Mistakes& mistakes, MeasuredTimes& times) : mistakes_(mistakes), times_(times) {}

  void read(const YamlNode& node) {
    FieldReader fields(node, words("'measured'"), mistakes_);
    fields.word("backend", times_.backend, Presence::required);
    fields.word("card", times_.card, Presence::required);
    fields.word("host", times_.host, Presence::required);
    if (const YamlNode* link = fields.find("h2d", may_lack)) times_.h2d = read_link(*link);
    if (const YamlNode* link = fields.find("d2h", may_lack)) times_.d2h = read_link(*link);
    const YamlNode* calls = fields.find("calls");
    fields.finish();
    if (calls == nullptr) return;
    if (!calls->is_sequence()) {
      mistakes_.error(calls->mark, fmt::format("'calls' must be a list, not {}", describe(*calls)));
    } else if (calls->items.size() > most_calls) {
      mistakes_.error(calls->mark, fmt::format("'calls' has more than {} rows", most_calls));
    } else {
      for (const YamlNode* call : calls->items) read_call(*call);
    }
  }

 private:
  static FieldWords words(std::string_view of) {
    return {.of = of, .file = {}, .refusal = FieldWords::Refusal::must_be};
  }

  MeasuredLink read_link(const YamlNode& node) {
    MeasuredLink link;
    FieldReader fields(node, words("a link"), mistakes_);
    fields.quantity("latency", link.latency, time_units, Presence::required, "a time such as 2 us");
    fields.quantity("bandwidth", link.bandwidth, byte_rate_units, may_lack,
                    "a rate such as 12 GB/s");
    fields.finish();
    return link;
  }

  void read_call(const YamlNode& node) {
    MeasuredCall call;
    KernelWork& work = call.work;
    FieldReader fields(node, words("a call"), mistakes_);
    const YamlNode* side = fields.find("on");
    const bool on_cpu = side != nullptr && side->is_scalar() && side->text == "cpu";
    if (side != nullptr && !on_cpu && (!side->is_scalar() || side->text != "gpu")) {
      fields.refuse(*side, "on", "gpu or cpu");
    }
    const bool has_name = fields.word("call", call.call, Presence::required);
    fields.word("kernel", call.kernel, Presence::required);
    fields.choice("kind", all_kernel_kinds, work.kind);
    fields.choice("format", all_math_formats, work.format);
    fields.real("flops", work.flops);
    fields.real("bytes", work.bytes);
    fields.real("reordered_bytes", work.reordered_bytes, may_lack);
    fields.real("rows", work.rows, may_lack);
    fields.real("columns", work.columns, may_lack);
    fields.real("depth", work.depth, may_lack);
    fields.real("products", work.products, may_lack);
    fields.real("seconds", call.seconds, Presence::required, "seconds, from 0 to 1000000", 0,
                most_seconds);
    fields.finish();
    if (!has_name) return;
    if (!seen_.emplace(on_cpu, call.call).second) {
      mistakes_.error(node.mark, fmt::format("the call '{}' is there twice", call.call));
    }
    if (work.rows <= 0 || work.columns <= 0 || work.depth <= 0 || work.products <= 0) {
      work.rows = work.columns = work.depth = 0;
      work.products = 1;
    }
    (on_cpu ? times_.cpu : times_.gpu).push_back(std::move(call));
  }

  Mistakes& mistakes_;
  MeasuredTimes& times_;
  std::set<std::pair<bool, std::string>> seen_;
};

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted.push_back('\\');
    quoted.push_back(static_cast<unsigned char>(letter) < ' ' ? ' ' : letter);
  }
  return quoted + '"';
}

std::string link_yaml(std::string_view name, const std::optional<MeasuredLink>& link) {
  if (!link) return {};
  const std::string bandwidth =
      link->bandwidth > 0 ? fmt::format(", bandwidth: {:.6f} GB/s", link->bandwidth / 1e9) : "";
  return fmt::format("  {}: {{latency: {:.3f} us{}}}\n", name, link->latency * 1e6, bandwidth);
}

std::string call_yaml(std::string_view side, const MeasuredCall& call) {
  const KernelWork& work = call.work;
  std::string text = fmt::format(
      "    - {{call: \"{}\", on: {}, kernel: {}, kind: {}, format: {}, flops: {}, bytes: {}",
      call.call, side, in_quotes(call.kernel), to_string(work.kind), to_string(work.format),
      work.flops, work.bytes);
  if (work.reordered_bytes > 0) text += fmt::format(", reordered_bytes: {}", work.reordered_bytes);
  if (work.rows > 0) {
    text += fmt::format(", rows: {}, columns: {}, depth: {}", work.rows, work.columns, work.depth);
    if (work.products != 1) text += fmt::format(", products: {}", work.products);
  }
  return text + fmt::format(", seconds: {}}}\n", call.seconds);
}

}  // namespace

std::string card_of_times(const Card& card) {
  return card.architecture == "generic" ? "generic" : card.name;
}

Result<std::shared_ptr<const MeasuredTimes>> read_measured_times(const SourceTextPtr& calibration,
                                                                 const Card& card) {
  const Result<YamlDocument> document = read_yaml(calibration);
  if (!document) return tl::unexpected(document.error());
  const YamlNode* const node =
      document->root->is_mapping() ? document->root->find("measured") : nullptr;
  if (node == nullptr) return nullptr;
  Mistakes mistakes(calibration);
  MeasuredTimes times;
  TimesReader(mistakes, times).read(*node);
  Diagnostics errors = std::move(mistakes).in_order();
  if (errors.empty() && times.card != card_of_times(card)) {
    errors.push_back(
        {.message = fmt::format("these times were measured for plans on '{}', and this one is on "
                                "'{}'",
                                times.card, card_of_times(card)),
         .span = span_of(calibration, node->find("card")->mark)});
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return std::make_shared<const MeasuredTimes>(std::move(times));
}

std::string measured_times_yaml(const MeasuredTimes& times, std::string_view origin) {
  std::string text = fmt::format("# Times of {}, measured by stowage validate.\n", origin);
  text += fmt::format("measured:\n  backend: {}\n  card: {}\n  host: {}\n",
                      in_quotes(times.backend), in_quotes(times.card), in_quotes(times.host));
  text += link_yaml("h2d", times.h2d) + link_yaml("d2h", times.d2h);
  text += times.gpu.empty() && times.cpu.empty() ? "  calls: []\n" : "  calls:\n";
  for (const MeasuredCall& call : times.gpu) text += call_yaml("gpu", call);
  for (const MeasuredCall& call : times.cpu) text += call_yaml("cpu", call);
  return text;
}

}  // namespace stowage
