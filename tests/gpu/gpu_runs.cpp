#include "tests/gpu/gpu_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace stowage::test {
namespace {

constexpr std::string_view before_table = R"(# What has run on a GPU

Written by the run itself, do not edit: `ctest -L gpu` (or `build/tests/gpu_tests`) on a machine with a GPU
runs every kernel below on it, in every type that it takes there, and holds what it computes against the
host's; the rows that it ran are replaced. `build/tests/gpu_tests --write-list` makes rows for kernels and
types that are new, keeps what is known of the others, and needs no GPU. What runs on the libraries of the
tests that only pretend to be CUDA's is never written here.

)";

constexpr std::string_view after_table = R"(
The difference is the largest of any result's elements, over the largest value of that result. A kernel
passes where it is at most 5e-5 in float32, 1e-11 in float64, 2e-3 in float16, 1.6e-2 in bfloat16, and where
integers and booleans are equal.

## What only a GPU can tell

What can be asked without a device is: kernels of our own are run by the host over their whole index space
and compiled by NVRTC for sm_75 to sm_120 (`.ci/full nvrtc`); every engine of cuDNN that a plan of a shipped
model could name is finalised, by its name, for described devices of seven architectures (`.ci/full cudnn`);
both, and the backend's own logic, are in [full-run.md](full-run.md) and [validation.md](validation.md). What
remains:

| | why it cannot be asked |
|---|---|
| that our kernels compute on a device what they do on the host | NVRTC compiles; nothing runs what it makes |
| handles (`cudnnCreate`, `cublasLtCreate`) | a handle takes a context on a device |
| that the addresses in a variant pack are those of the tensors | the pack itself is finalised with addresses of the host, which cuDNN does not look at before it executes |
| execution (`cudnnBackendExecute`), and that an engine's result is right | it runs on a stream |
| operation graphs made with a handle instead of a described device | as above; the attributes besides are the same |
| execution plans of attention: cuDNN compiles their engines when the plan is finalised | takes a driver; graph, engine, knobs and the configuration with its workspace are finalised |
| products by cuBLAS, TF32 and 16 bits included | as above |
| copies beside kernels, `cuStreamWaitValue64`, times of events | a driver's |
)";

constexpr std::string_view columns =
    "| kernel | type | last run | card | driver | NVRTC | cuBLAS | cuDNN | result |\n"
    "|---|---|---|---|---|---|---|---|---|\n";
constexpr std::size_t column_count = 9;

/// The text as a table's cell may hold it: without bars, line ends and outer blanks.
std::string cell(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '|' || c == '\n' || c == '\r'; }, '/');
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string line_of(const GpuRunRow& row) {
  const std::string head =
      fmt::format("| `{}` | {} |", to_string(row.what.kernel), to_string(row.what.type));
  if (!row.last) return head + " never | | | | | | |\n";
  const GpuRun& run = *row.last;
  return fmt::format("{} {} | {} | {} | {} | {} | {} | {}, {} |\n", head, cell(run.date),
                     cell(run.card), cell(run.driver), cell(run.nvrtc), cell(run.cublas),
                     cell(run.cudnn), run.passed ? "passed" : "FAILED", cell(run.difference));
}

/// The cells between the bars of "| a | b |"; none: the line is not a row of a table.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  if (!line.starts_with('|') || !line.ends_with('|') || line.size() < 2) return cells;
  line = line.substr(1);
  while (!line.empty()) {
    const std::size_t bar = line.find('|');
    cells.push_back(cell(std::string(line.substr(0, bar))));
    line = line.substr(bar + 1);
  }
  return cells;
}

bool is_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  return std::ranges::equal(text, form, [](char c, char wanted) {
    return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted;
  });
}

/// The run in a row that is not "never"; none: the cells do not hold a run.
std::optional<GpuRun> run_of(const std::vector<std::string>& cells) {
  GpuRun run{.date = cells[2],
             .card = cells[3],
             .driver = cells[4],
             .nvrtc = cells[5],
             .cublas = cells[6],
             .cudnn = cells[7]};
  const std::string& result = cells[8];
  run.passed = result.starts_with("passed, ");
  if (!is_date(run.date) || run.card.empty()) return std::nullopt;
  if (!run.passed && !result.starts_with("FAILED, ")) return std::nullopt;
  run.difference = result.substr(result.find(' ') + 1);
  return run;
}

}  // namespace

GpuRuns rows_of_table(const GpuRuns& known) {
  GpuRuns rows;
  for (const KernelRow& row : kernel_table()) {
    for (const DataType type : kernel_types(row.kernel, KernelDevice::cuda)) {
      const KernelInType what{row.kernel, type};
      const auto found = std::ranges::find(known, what, &GpuRunRow::what);
      rows.push_back({what, found == known.end() ? std::nullopt : found->last});
    }
  }
  return rows;
}

void record(GpuRuns& runs, KernelInType what, GpuRun run) {
  std::ranges::find(runs, what, &GpuRunRow::what)->last = std::move(run);
}

std::size_t passed_on_a_gpu(const GpuRuns& runs) {
  return static_cast<std::size_t>(std::ranges::count_if(
      runs, [](const GpuRunRow& row) { return row.last && row.last->passed; }));
}

std::string gpu_runs_summary(const GpuRuns& runs) {
  return fmt::format("{} of {} kernels and types have run on a GPU", passed_on_a_gpu(runs),
                     runs.size());
}

std::string gpu_runs_text(const GpuRuns& runs) {
  std::string text(before_table);
  text += gpu_runs_summary(runs) + ".\n\n";
  text += columns;
  for (const GpuRunRow& row : runs) text += line_of(row);
  text += after_table;
  return text;
}

Result<GpuRuns> read_gpu_runs(std::string_view text) {
  GpuRuns runs;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.starts_with("| `")) continue;  // the table's rows begin with a kernel's name
    const std::vector<std::string> cells = cells_of(line);
    const auto wrong = [&](std::string_view why) {
      return failure(fmt::format("line {}: {}: {}", number, why, line));
    };
    if (cells.size() != column_count) return wrong("a row of the table has 9 cells");
    const std::string& name = cells[0];
    if (name.size() < 3 || !name.ends_with('`')) return wrong("no kernel's name");
    const auto kernel = find_kernel(name.substr(1, name.size() - 2));
    const auto type = parse_data_type(cells[1]);
    if (!kernel || !type) continue;
    GpuRunRow row{{*kernel, *type}, std::nullopt};
    if (cells[2] != "never") {
      row.last = run_of(cells);
      if (!row.last) return wrong("this is neither 'never' nor a run");
    }
    if (std::ranges::find(runs, row.what, &GpuRunRow::what) != runs.end()) {
      return wrong("a second row of this kernel and type");
    }
    runs.push_back(std::move(row));
  }
  return runs;
}

}  // namespace stowage::test
