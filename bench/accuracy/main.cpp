// How near Stowage's figures are to what cards were measured to take (docs/accuracy.md).
//
//   accuracy FOLDER [--rows] [--svg FILE]
//
// FOLDER holds the measurements (docs/accuracy.md says which). --rows prints each of them. Exit 2:
// a file cannot be read or a job is refused.
#include <fmt/core.h>

#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "bench/accuracy/brackets.hpp"
#include "bench/accuracy/predict.hpp"
#include "bench/accuracy/scatter.hpp"
#include "bench/accuracy/score.hpp"
#include "bench/accuracy/sets.hpp"

namespace {

using namespace stowage::accuracy;

struct Options {
  std::filesystem::path folder;
  std::string svg;
  bool rows = false;
};

struct Row {
  const Measurement* measurement = nullptr;
  Prediction prediction;
  bool judged = false;
};

void print_header(const std::string& name) {
  fmt::print("\n{}\n  {:<44} {:>5} {:>8} {:>8} {:>8} {:>6} {:>8} {:>8}\n", name, "", "rows",
             "median", "p90", "signed", "low", "low >2%", "refused");
}

void print_score(const std::string& name, const std::vector<Pair>& pairs) {
  const Score result = score(pairs);
  fmt::print("  {:<44} {:>5} {:>7.2f}% {:>7.2f}% {:>+7.2f}% {:>6} {:>8} {:>8}\n", name, result.rows,
             100 * result.median, 100 * result.percentile90, 100 * result.median_signed, result.low,
             result.low_by_2_percent, result.false_refusals);
}

enum class Half { both, fitted, judged };

std::vector<Pair> pairs(const std::vector<Row>& rows, Half half, auto predicted, auto measured) {
  std::vector<Pair> result;
  for (const Row& row : rows) {
    if (half != Half::both && (half == Half::judged) != row.judged) continue;
    result.push_back({measured(row), predicted(row), row.prediction.total});
  }
  return result;
}

double device(const Row& row) { return row.measurement->measured_mib; }

/// What the machine's processes take outside the allocator, by the half that is not judged.
double fitted_outside(const std::vector<Row>& rows) {
  std::vector<double> left;
  for (const Row& row : rows) {
    if (!row.judged) left.push_back(row.measurement->measured_mib - row.prediction.reserved);
  }
  return percentile(left, 0.5);
}

void print_rows(const std::vector<Row>& rows, double outside) {
  fmt::print("    {:<24} {:>6} {:>9} {:>9} {:>9} {:>9} {:>8}\n", "model", "batch", "tensors",
             "reserved", "device", "measured", "error");
  for (const Row& row : rows) {
    const double predicted = row.prediction.reserved + outside;
    const double measured = row.measurement->measured_mib;
    fmt::print("    {:<24.24} {:>6} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>+7.1f}%{}\n",
               row.measurement->model, row.measurement->job.batch, row.prediction.tensors,
               row.prediction.reserved, predicted, measured,
               100 * (predicted - measured) / measured, row.judged ? "" : " (fitted on)");
  }
}

std::vector<Row> predict(Predictor& predictor, const DataSet& set) {
  std::vector<Row> rows;
  for (const Measurement& measurement : set.rows) {
    rows.push_back({&measurement, predictor.predict(measurement.job, set.context_mib),
                    is_judged(measurement.model)});
  }
  return rows;
}

/// The pairs that count: what was judged on other rows than it was fitted on, or not fitted at all.
std::vector<Pair> report(Predictor& predictor, const DataSet& set, const Options& options) {
  const std::vector<Row> rows = predict(predictor, set);
  print_header(set.name);
  fmt::print("  ({})\n", set.about);
  const auto shipped = [](const Row& row) { return row.prediction.device(); };
  if (!set.competitor.empty()) {
    const auto others = [](const Row& row) { return row.measurement->others_mib.value_or(0); };
    print_score(set.competitor, pairs(rows, Half::both, others, device));
    print_score(set.competitor + ", judged half", pairs(rows, Half::judged, others, device));
  }
  if (set.context_mib) {
    print_score(fmt::format("with its measured context of {:.0f} MiB", *set.context_mib),
                pairs(rows, Half::both, shipped, device));
    if (options.rows) print_rows(rows, rows.front().prediction.outside);
    return pairs(rows, Half::both, shipped, device);
  }
  print_score("as shipped", pairs(rows, Half::both, shipped, device));
  const double outside = fitted_outside(rows);
  const auto fitted = [&](const Row& row) { return row.prediction.reserved + outside; };
  print_score(fmt::format("context and libraries of {:.0f} MiB: fitted on", outside),
              pairs(rows, Half::fitted, fitted, device));
  print_score("  the same, judged half", pairs(rows, Half::judged, fitted, device));
  const auto reserved = [](const Row& row) { return row.prediction.reserved; };
  const auto left = [&](const Row& row) { return device(row) - outside; };
  print_score("  what is left without them, judged half",
              pairs(rows, Half::judged, reserved, left));
  if (options.rows) print_rows(rows, outside);
  return pairs(rows, Half::judged, fitted, device);
}

void report_brackets(Predictor& predictor, const Options& options) {
  constexpr double context_mib = 900;
  int brackets = 0, hits = 0, ceilings = 0, reached = 0, refused = 0, promised = 0;
  fmt::print("\nbatch brackets, RTX 3090 under autocast\n");
  for (const Bracket& bracket : read_brackets(options.folder)) {
    const BracketAnswer given = answer(predictor, bracket, context_mib);
    const bool hit = given.hit(bracket);
    (bracket.failed > 0 ? brackets : ceilings) += 1;
    if (hit) (bracket.failed > 0 ? hits : reached) += 1;
    if (!given.ran_fits) ++refused;
    if (given.failed_fits) ++promised;
    if (options.rows) {
      fmt::print("    {:<24} ran {:>4} {:<8} failed {:>4} {:<8}\n", bracket.model, bracket.ran,
                 given.ran_fits ? "fits" : "REFUSED", bracket.failed,
                 bracket.failed == 0 ? ""
                 : given.failed_fits ? "PROMISED"
                                     : "refused");
    }
  }
  fmt::print("  hit {} of {}; ceilings reached {} of {}; false refusals {}, false promises {}\n",
             hits, brackets, reached, ceilings, refused, promised);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rows") == 0) {
      options.rows = true;
    } else if (std::strcmp(argv[i], "--svg") == 0 && i + 1 < argc) {
      options.svg = argv[++i];
    } else {
      options.folder = argv[i];
    }
  }
  return options;
}

int run(const Options& options) {
  Predictor predictor(STOWAGE_SOURCE_DIR "/configs");
  std::vector<Series> series;
  std::vector<Pair> all;
  for (const DataSet& set :
       read_sets(options.folder, STOWAGE_SOURCE_DIR "/bench/accuracy/models")) {
    series.push_back({set.name, report(predictor, set, options)});
    all.insert(all.end(), series.back().pairs.begin(), series.back().pairs.end());
  }
  print_header("in all, judged rows");
  print_score("", all);
  report_brackets(predictor, options);
  if (!options.svg.empty()) std::ofstream(options.svg) << scatter_svg(series);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.folder.empty()) {
    fmt::print(stderr, "NOT RUN: no measurements given. usage: {} FOLDER [--rows] [--svg FILE]\n",
               argv[0]);
    return 77;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
