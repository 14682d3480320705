#include "estimator/onnx/graph_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "estimator/base/cure.hpp"
#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

constexpr std::int64_t largest_extent = 1'000'000'000;

bool names_batch(std::string_view symbol) {
  const std::string name = lower_case(symbol);
  return name.find("batch") != std::string::npos || name == "n" || name == "b" || name == "bs";
}

bool names_sequence(std::string_view symbol) {
  const std::string name = lower_case(symbol);
  constexpr std::array<std::string_view, 4> parts{"seq", "length", "token", "time"};
  return name == "s" || name == "t" || name == "l" ||
         std::ranges::any_of(
             parts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// torch.export calls dimensions s0, s77: the second one of [samples, tokens] is the sequence.
bool counts_tokens(const OnnxValueInfo& input, std::size_t axis) {
  const std::string& symbol = input.shape[axis].symbol;
  const bool is_numbered =
      symbol.size() > 1 && symbol[0] == 's' &&
      std::all_of(symbol.begin() + 1, symbol.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto type = data_type_of(input.type);
  return is_numbered && axis == 1 && input.shape.size() == 2 && type && !is_floating_point(*type);
}

std::optional<std::int64_t> extent_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 1 || value > largest_extent) return std::nullopt;
  return value;
}

class InputReader {
 public:
  InputReader(const OnnxGraph& graph, const ImportOptions& options)
      : graph_(graph), options_(options) {
    for (const OnnxTensor& tensor : graph.initializers) initialised_.insert(tensor.name);
  }

  Result<GraphInputs> read() {
    for (const OnnxValueInfo& input : graph_.inputs) {
      if (!initialised_.contains(input.name)) read_symbols(input);
    }
    for (const auto& [name, value] : options_.values) {
      if (used_.contains(name)) continue;
      std::vector<std::string_view> known;
      for (const auto& [symbol, extent] : found_.symbols) known.push_back(symbol);
      mistakes_.push_back({.message = fmt::format("the model has no open dimension '{}'", name),
                           .hint = did_you_mean(name, known)});
    }
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    for (const OnnxValueInfo& input : graph_.inputs) {
      if (!initialised_.contains(input.name)) read_type(input);
    }
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    open_fixed_batch();
    if (found_.seq == 0 && options_.seq) {
      return failure("the model has no open dimension that is a sequence's");
    }
    return std::move(found_);
  }

 private:
  void read_symbols(const OnnxValueInfo& input) {
    for (std::size_t i = 0; i < input.shape.size(); ++i) {
      const OnnxDimension& dimension = input.shape[i];
      if (dimension.value > 0 || found_.symbols.contains(dimension.symbol)) continue;
      if (dimension.symbol.empty() && i == 0) continue;  // the batch, see read_type
      const auto given = options_.values.find(dimension.symbol);
      if (given != options_.values.end()) {
        read_given(given->first, given->second);
      } else if (names_batch(dimension.symbol)) {
        found_.symbols[dimension.symbol] = batch_symbol;
      } else if (names_sequence(dimension.symbol) || counts_tokens(input, i)) {
        read_sequence(input, dimension);
      } else if (i == 0) {
        found_.symbols[dimension.symbol] = batch_symbol;
        note(fmt::format("dimension '{}' of '{}' is taken for the batch", dimension.symbol,
                         input.name));
      } else {
        missing(input, i);
      }
    }
  }

  void read_given(const std::string& name, const std::string& text) {
    used_.insert(name);
    if (text == "batch") {
      found_.symbols[name] = batch_symbol;
    } else if (const auto extent = extent_of(text)) {
      found_.symbols[name] = *extent;
    } else {
      mistakes_.push_back(
          {.message = fmt::format("dimension '{}' takes 'batch' or a size, not '{}'", name, text)});
    }
  }

  void read_sequence(const OnnxValueInfo& input, const OnnxDimension& dimension) {
    if (!options_.seq) {
      mistakes_.push_back(
          {.message = fmt::format("dimension '{}' of '{}' is a sequence's, and has no length",
                                  dimension.symbol, input.name),
           .hint = hint_of(Cure::sequence_length)});
      return;
    }
    found_.seq = *options_.seq;
    found_.symbols[dimension.symbol] = *options_.seq;
  }

  void missing(const OnnxValueInfo& input, std::size_t axis) {
    const std::string& symbol = input.shape[axis].symbol;
    mistakes_.push_back(
        {.message =
             symbol.empty()
                 ? fmt::format("dimension {} of '{}' is open and has no name", axis, input.name)
                 : fmt::format("dimension '{}' of '{}' is open", symbol, input.name),
         .hint = symbol.empty() ? std::string("export it with a name or a size for it")
                                : hint_of(Cure::dimension_size)});
  }

  void read_type(const OnnxValueInfo& input) {
    const auto type = data_type_of(input.type);
    if (!input.is_tensor || !input.has_shape || !type || input.shape.size() > most_onnx_axes) {
      mistakes_.push_back(
          {.message =
               fmt::format("input '{}' is not a tensor of a known shape and format", input.name)});
      return;
    }
    Shape shape;
    for (const OnnxDimension& dimension : input.shape) {
      if (dimension.value > largest_extent) {
        mistakes_.push_back({.message = fmt::format("input '{}' has an extent of {}", input.name,
                                                    dimension.value)});
        return;
      }
      const auto symbol = found_.symbols.find(dimension.symbol);
      shape.push_back(dimension.value > 0              ? Affine(dimension.value)
                      : symbol != found_.symbols.end() ? symbol->second
                                                       : batch_symbol);
    }
    found_.tensors.emplace_back(input.name, TensorType{std::move(shape), *type});
  }

  // Where no dimension is the batch, the first of all inputs is, if they agree.
  void open_fixed_batch() {
    std::int64_t first = 0;
    for (const auto& [name, type] : found_.tensors) {
      for (const Affine& extent : type.shape) {
        if (extent.slope != 0) return;
      }
      if (type.shape.empty()) continue;
      if (first != 0 && type.shape[0] != Affine(first)) return;
      first = type.shape[0].constant;
    }
    if (first == 0) return;
    found_.fixed_batch = first;
    for (auto& [name, type] : found_.tensors) {
      if (!type.shape.empty()) type.shape[0] = batch_symbol;
    }
    note(fmt::format("the file has a fixed first dimension of {}, which is taken for the batch",
                     first));
  }

  void note(std::string text) {
    found_.notes.push_back({.severity = Severity::note, .message = std::move(text)});
  }

  const OnnxGraph& graph_;
  const ImportOptions& options_;
  std::set<std::string_view> initialised_;
  std::set<std::string> used_;
  GraphInputs found_;
  Diagnostics mistakes_;
};

}  // namespace

Result<GraphInputs> read_graph_inputs(const OnnxGraph& graph, const ImportOptions& options) {
  return InputReader(graph, options).read();
}

}  // namespace stowage
