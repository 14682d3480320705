#include "tests/planner/solve/integer_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

// Memory in MiB and time in milliseconds: CBC's tolerances are absolute.
double mebibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

// CBC wants an unknown once a row; it is written in the order of first mention.
class Terms {
 public:
  Terms& add(double factor, const std::string& name) {
    const auto known = std::find_if(terms_.begin(), terms_.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known == terms_.end())
      terms_.emplace_back(name, factor);
    else
      known->second += factor;
    return *this;
  }
  [[nodiscard]] bool empty() const { return terms_.empty(); }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [name, factor] : terms_) {
      text += fmt::format(" {} {:.17g} {}\n", factor < 0 ? '-' : '+', std::abs(factor), name);
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, double>> terms_;
};

class ProgramWriter {
 public:
  ProgramWriter(const ResidencyProblem& problem, const std::vector<Bytes>& limits)
      : problem_(problem), memory_(limits.size()) {
    for (std::size_t t = 0; t < problem.operations.size(); ++t) add_operation(t);
    for (std::size_t i = 0; i < problem.items.size(); ++i) add_item(i);
    for (std::size_t t = 0; t < memory_.size(); ++t) {
      if (!memory_[t].empty()) row(memory_[t], "<=", mebibytes(limits[t]));
    }
  }

  IntegerProgram finished() {
    // A constant term is a variable that is 1.
    std::string text = "Minimize\n obj:\n" + objective_.add(constant_, "one").text();
    text += "Subject To\n" + rows_ + "Bounds\n one = 1\nBinaries\n";
    for (const std::string& name : unknowns_) text += " " + name + "\n";
    return {text + "End\n", static_cast<int>(unknowns_.size())};
  }

 private:
  std::string unknown(std::string name) {
    unknowns_.push_back(name);
    return name;
  }

  void pay(double seconds, const std::string& name) { objective_.add(1e3 * seconds, name); }

  void row(const Terms& terms, const char* sense, double limit) {
    rows_ += fmt::format(" c{}:\n{} {} {:.17g}\n", ++row_count_, terms.text(), sense, limit);
  }

  void at_most(const std::string& less, const std::string& more) {
    row(Terms().add(1, less).add(-1, more), "<=", 0);
  }

  static std::string on(std::size_t t) { return fmt::format("x{}", t); }

  void add_operation(std::size_t t) {
    const Operation& operation = problem_.operations[t];
    const std::string x = unknown(on(t));
    if (operation.pin != Pin::free) row(Terms().add(1, x), "=", operation.pin == Pin::gpu ? 1 : 0);
    constant_ += 1e3 * operation.cpu_seconds;
    pay(-operation.cpu_seconds, x);
    Terms engines;
    engines.add(-1, x);
    for (std::size_t k = 0; k < operation.engines.size(); ++k) {
      const std::string engine = unknown(fmt::format("g{}_{}", t, k));
      engines.add(1, engine);
      pay(operation.engines[k].seconds, engine);
      memory_[t].add(mebibytes(operation.engines[k].workspace + operation.temporaries), engine);
    }
    row(engines, "=", 0);
  }

  // One version's host copy, wanted by CPU readers and by fetches: paid where the GPU wrote it.
  struct HostCopy {
    std::string producer;  // empty: valid without cost
    std::string copy;
  };

  void want(const HostCopy& version, const std::string& reader_on_gpu, const std::string& fetch) {
    if (version.producer.empty()) return;
    // The producer on the GPU and the reader on the CPU; or the producer on the GPU and a fetch.
    row(Terms().add(1, version.copy).add(-1, version.producer).add(1, reader_on_gpu), ">=", 0);
    row(Terms().add(1, version.copy).add(-1, version.producer).add(-1, fetch), ">=", -1);
  }

  HostCopy new_version(const Item& item, std::size_t i, std::size_t touch) {
    HostCopy version{on(static_cast<std::size_t>(item.touches[touch].step)),
                     unknown(fmt::format("d{}_{}", i, touch))};
    pay(item.d2h_seconds, version.copy);
    return version;
  }

  void add_item(std::size_t i) {
    const Item& item = problem_.items[i];
    const std::size_t touches = item.touches.size();
    const std::size_t gaps = touches - (item.wraps ? 0 : 1);
    std::vector<std::string> present, resident;
    for (std::size_t k = 0; k < touches; ++k) {
      const auto step = static_cast<std::size_t>(item.touches[k].step);
      present.push_back(unknown(fmt::format("u{}_{}", i, k)));
      at_most(on(step), present[k]);
      if (item.touches[k].writes) at_most(present[k], on(step));
      memory_[step].add(mebibytes(item.bytes), present[k]);
    }
    for (std::size_t k = 0; k < gaps; ++k) {
      const std::size_t next = (k + 1) % touches;
      resident.push_back(unknown(fmt::format("r{}_{}", i, k)));
      at_most(resident[k], present[k]);
      at_most(resident[k], present[next]);
      const auto count = static_cast<std::int32_t>(memory_.size());
      const std::int32_t from = item.touches[k].step;
      const std::int32_t to = item.touches[next].step;
      const std::int32_t steps = k + 1 < touches ? to - from : to - from + count;
      for (std::int32_t s = 1; s < steps; ++s) {
        memory_[static_cast<std::size_t>((from + s) % count)].add(mebibytes(item.bytes),
                                                                  resident[k]);
      }
    }
    // Of an item that wraps and is written, what is there at first is what was written last.
    HostCopy version;
    std::size_t last_write = touches;
    for (std::size_t k = 0; k < touches; ++k) last_write = item.touches[k].writes ? k : last_write;
    HostCopy last;
    if (last_write < touches) last = new_version(item, i, last_write);
    if (item.wraps) version = last;
    for (std::size_t k = 0; k < touches; ++k) {
      if (item.touches[k].reads) {
        const std::string fetch = unknown(fmt::format("f{}_{}", i, k));
        pay(item.h2d_seconds, fetch);
        Terms enough;
        enough.add(1, fetch).add(-1, present[k]);
        if (k > 0 || item.wraps) enough.add(1, resident[k > 0 ? k - 1 : gaps - 1]);
        row(enough, ">=", 0);
        want(version, on(static_cast<std::size_t>(item.touches[k].step)), fetch);
      }
      if (item.touches[k].writes) version = k == last_write ? last : new_version(item, i, k);
    }
  }

  const ResidencyProblem& problem_;
  Terms objective_;
  std::string rows_;
  double constant_ = 0;
  int row_count_ = 0;
  std::vector<std::string> unknowns_;
  std::vector<Terms> memory_;  // by step
};

}  // namespace

IntegerProgram integer_program(const ResidencyProblem& problem, const std::vector<Bytes>& limits) {
  return ProgramWriter(problem, limits).finished();
}

bool cbc_is_here() {
  static const bool here = std::system("cbc -quit >/dev/null 2>&1") == 0;
  return here;
}

std::optional<double> optimum_by_cbc(const ResidencyProblem& problem,
                                     const std::vector<Bytes>& limits) {
  const testing::TemporaryFolder folder;
  const std::string program = folder.file("problem.lp", integer_program(problem, limits).text);
  const std::string answer = folder.path("answer");
  const std::string command = fmt::format(
      "cbc '{}' ratioGap 0 allowableGap 0 primalTolerance 1e-9 integerTolerance 1e-9 seconds 100 "
      "solve solution '{}' >'{}' 2>&1",
      program, answer, folder.path("log"));
  if (std::system(command.c_str()) != 0) return std::nullopt;
  // "Optimal - objective value 12.5", then the unknowns that are not 0.
  std::istringstream lines(testing::file_text(answer));
  std::string status, dash, objective, value;
  double optimum = 0;
  lines >> status >> dash >> objective >> value >> optimum;
  if (!lines || status != "Optimal") return std::nullopt;
  return 1e-3 * optimum;
}

}  // namespace stowage
