#include "cli/report/weights_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/output/table.hpp"
#include "estimator/base/printable.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

bool names_weights(const FileHead& file_head) {
  if (file_head.is_folder) {
    std::error_code code;
    const std::filesystem::path folder(file_head.argument);
    return !std::filesystem::exists(folder / "config.json", code) && has_weights(folder);
  }
  return file_head.is_file &&
         (is_gguf(file_head.first_bytes) || is_safetensors(file_head.first_bytes, file_head.size));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Table totals_table(const StoredWeights& weights) {
  Table table{.columns = {{"Format", "format"},
                          {"Tensors", "tensors"},
                          {"Elements", "elements"},
                          {"Size", "bytes"}}};
  Bytes bytes;
  std::int64_t tensors = 0, elements = 0;
  for (const FormatTotal& total : format_totals(weights)) {
    table.rows.push_back({{total.format, total.tensors, total.elements, total.bytes}});
    tensors += total.tensors;
    elements += total.elements;
    bytes += total.bytes;
  }
  table.rows.push_back({{std::string("all"), tensors, elements, bytes}, true});
  return table;
}

Table tensor_table(const StoredWeights& weights) {
  Table table{
      .columns = {
          {"Size", "bytes"}, {"Format", "format"}, {"Shape", "shape"}, {"Tensor", "tensor"}}};
  std::vector<const StoredTensor*> sorted;
  for (const StoredTensor& tensor : weights.tensors) sorted.push_back(&tensor);
  std::ranges::stable_sort(sorted, [](const StoredTensor* a, const StoredTensor* b) {
    return a->bytes.count() > b->bytes.count();
  });
  for (const StoredTensor* tensor : sorted) {
    table.rows.push_back(
        {{tensor->bytes, tensor->format, shape_text(tensor->shape), tensor->name}});
  }
  return table;
}

constexpr std::string_view architecture_key = "general.architecture";

Table stated_table(const StoredWeights& weights) {
  Table table{.columns = {{"Value", "value"}, {"Key", "key"}}};
  table.rows.reserve(weights.stated.size());
  for (const StatedValue& stated : weights.stated) {
    table.rows.push_back({{printable_line(stated.text), printable_line(stated.key)}});
  }
  return table;
}

/// "llama: the network of a config.json with the model_type 'llama'"
std::string architecture_line(std::string_view architecture) {
  const std::string_view type = model_type_of_gguf(architecture);
  return fmt::format("Architecture: {}, {}", printable_line(architecture),
                     type.empty()
                         ? std::string("which is not read from a config.json")
                         : fmt::format("the network of a config.json of model_type '{}'", type));
}

void say_what_is_stated(Report& out, const StoredWeights& weights) {
  if (weights.stated.empty()) return;
  const std::string_view architecture = stated_value(weights, architecture_key);
  Json::Object stated;
  for (const StatedValue& one : weights.stated) {
    stated.emplace_back(printable_line(one.key), Json(printable_line(one.text)));
  }
  out.json.emplace_back("architecture",
                        architecture.empty() ? Json() : Json(printable_line(architecture)));
  out.json.emplace_back("stated", Json(std::move(stated)));
  if (!architecture.empty()) out.say("\n" + architecture_line(architecture));
  out.say("\nWhat the header states:");
  out.show(stated_table(weights));
}

constexpr std::size_t most_tensors_shown = 10;

Answer answer_of_weights(const StoredWeights& weights, const std::string& name) {
  Answer answer;
  Report& out = answer.report;
  Json::Object formats;
  Bytes all;
  for (const FormatTotal& total : format_totals(weights)) {
    formats.emplace_back(total.format, Json(Json::Object{{"tensors", Json(total.tensors)},
                                                         {"elements", Json(total.elements)},
                                                         {"bytes", Json(total.bytes.count())}}));
    all += total.bytes;
  }
  out.json.emplace_back("weights", Json(name));
  out.json.emplace_back("kind", Json(weights.kind));
  out.json.emplace_back("files", Json(static_cast<std::int64_t>(weights.files.size())));
  out.json.emplace_back("bytes", Json(all.count()));
  out.json.emplace_back("formats", Json(std::move(formats)));
  const std::size_t files = weights.files.size();
  out.say(
      fmt::format("{}: {} weights in {} file{}", name, weights.kind, files, files == 1 ? "" : "s"),
      Tone::heading);
  out.show(totals_table(weights));
  say_what_is_stated(out, weights);
  if (!weights.tensors.empty()) {
    out.say("\nThe largest tensors:");
    out.show(folded(tensor_table(weights), most_tensors_shown));
  }
  out.say("\nHeaders alone are read. A model of these weights is described by its config.json");
  out.listing = tensor_table(weights);
  return answer;
}

}  // namespace

std::optional<Result<Answer>> weights_summary(const SummaryRequest& request) {
  const FileHead file_head = read_file_head(request.model.source);
  if (!names_weights(file_head)) return std::nullopt;
  auto weights = file_head.is_folder              ? read_weight_folder(file_head.argument)
                 : is_gguf(file_head.first_bytes) ? read_gguf(file_head.argument)
                                                  : read_safetensors(file_head.argument);
  if (!weights) return Result<Answer>(tl::unexpected(std::move(weights.error())));
  return answer_of_weights(*weights, request.model.source);
}

}  // namespace stowage
