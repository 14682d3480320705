// The table as the docs show it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "estimator/optimizer/update_script.hpp"

namespace stowage {

namespace {

std::string settings_text(const OptimizerRow& row) {
  std::vector<std::string> words;
  for (const SettingDefault& setting : row.settings) {
    words.push_back(fmt::format("`{}` {}", setting.name, to_string(setting.value)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string state_text(const OptimizerRow& row, const StateTensor& state) {
  std::string text = fmt::format("`{}`", state.name);
  std::vector<std::string_view> notes;
  switch (state.shape) {
    case StateShape::parameter:
      break;
    case StateShape::rows:
      notes.push_back("of rows");
      break;
    case StateShape::columns:
      notes.push_back("of columns");
      break;
    case StateShape::scalar:
      notes.push_back("a scalar");
      break;
    case StateShape::blocks:
      notes.push_back("one for 256 elements");
      break;
  }
  if (state.type == StateType::float32 && state.shape != StateShape::scalar) {
    notes.push_back("float32");
  }
  if (state.type == StateType::uint8) notes.push_back("uint8");
  if (!state.when.empty()) notes.push_back(state.when);
  if (state.place == StatePlace::host_unless_fused) {
    notes.push_back(row.fused != nullptr ? "on the host unless fused" : "on the host");
  }
  if (state.place == StatePlace::managed) notes.push_back("in unified memory");
  if (!notes.empty()) text += fmt::format(" ({})", fmt::join(notes, "; "));
  return text;
}

std::string states_text(const OptimizerRow& row) {
  std::vector<std::string> words;
  for (const StateTensor& state : row.state) words.push_back(state_text(row, state));
  for (const SharedState& state : row.shared) {
    words.push_back(fmt::format("`{}` ({} float32 values for all)", state.name, state.elements));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The peak of a call's temporaries, in copies of one parameter (for-loop) or of all parameters.
int copies(const OptimizerRow& row, OptimizerSettings settings,
           OptimizerImplementation implementation) {
  settings.implementation = implementation;
  const UpdatedTensor matrix{.shape = {4096, 4096}, .type = DataType::float32};
  const std::vector<UpdatedTensor> tensors{matrix, matrix};
  const UpdateCalls calls = update_calls(row, settings, tensors);
  std::int64_t most = 0;
  for (const UpdateCall& call : calls.calls) {
    std::int64_t bytes = 0;
    for (const std::size_t i : call.temporaries) bytes += calls.temporaries[i].bytes.count();
    most = std::max(most, bytes);
  }
  const bool of_all = implementation != OptimizerImplementation::for_loop;
  const std::int64_t whole = element_count(matrix) * element_size(matrix.type) * (of_all ? 2 : 1);
  return static_cast<int>(std::lround(static_cast<double>(most) / static_cast<double>(whole)));
}

std::string implementation_text(const OptimizerRow& row, OptimizerImplementation implementation) {
  const auto text = [&](int number) {
    if (number == 0) return std::string("0");
    const char* unit = implementation == OptimizerImplementation::for_loop ? "p" : "P";
    return number == 1 ? std::string(unit) : fmt::format("{} {}", number, unit);
  };
  OptimizerSettings plain = default_settings(row), decaying = plain;
  plain.weight_decay = 0;
  decaying.weight_decay = 0.01;
  const int without = copies(row, plain, implementation);
  const int with = copies(row, decaying, implementation);
  std::string result = fmt::format("{}: {}", to_string(implementation), text(without));
  if (with != without) result += fmt::format(", with weight decay {}", text(with));
  return result;
}

}  // namespace

std::string optimizer_reference() {
  std::string page;
  const auto line = [&](const std::string& text) { page += text + '\n'; };
  line(
      "| optimizer | settings, with their defaults | state of a parameter | "
      "implementations, the default first, and their temporaries |");
  line("|---|---|---|---|");
  for (const OptimizerRow& row : optimizer_table()) {
    std::vector<std::string> words;
    for (const OptimizerImplementation implementation : implementations(row)) {
      words.push_back(implementation_text(row, implementation));
    }
    line(fmt::format("| `{}`: {} ({}) | {} | {} | {} |", row.name, row.doc, row.source,
                     settings_text(row), states_text(row), fmt::join(words, "; ")));
  }
  line("");
  line("| setting | meaning |");
  line("|---|---|");
  for (const OptimizerSetting& setting : setting_table()) {
    line(fmt::format("| `{}` | {} |", setting.spec.name, setting.spec.doc));
  }
  return page;
}

}  // namespace stowage
