// How near Stowage's figures are to what cards were measured to take (docs/accuracy.md).
//
//   accuracy FOLDER [--rows] [--trainings] [--svg FILE]
//
// FOLDER holds the measurements (docs/accuracy.md says which). --rows prints each of them. Exit 2:
// a file cannot be read or a job is refused.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>

#include "bench/accuracy/brackets.hpp"
#include "bench/accuracy/predict.hpp"
#include "bench/accuracy/scatter.hpp"
#include "bench/accuracy/score.hpp"
#include "bench/accuracy/sets.hpp"
#include "bench/accuracy/torchtune.hpp"

namespace {

using namespace stowage::accuracy;
using stowage::OptimizerImplementation;

constexpr const char* own_models = STOWAGE_SOURCE_DIR "/bench/accuracy/models";

struct Options {
  std::filesystem::path folder;
  std::string svg;
  bool rows = false;
  bool trainings = false;
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

/// MiB that a machine's processes take outside the allocator, by the half that is not judged.
struct Outside {
  double middle = 0;  ///< the median of what is left of the measurements
  double safe = 0;    ///< the least with which one row in twenty is low by more than 2 percent
};

Outside fitted_outside(const std::vector<Row>& rows) {
  std::vector<double> left, wanted;
  for (const Row& row : rows) {
    if (row.judged) continue;
    left.push_back(device(row) - row.prediction.reserved);
    wanted.push_back(0.98 * device(row) - row.prediction.reserved);
  }
  if (wanted.empty()) return {};
  std::sort(wanted.begin(), wanted.end());
  const double middle = percentile(left, 0.5);
  return {middle, std::max(middle, wanted[wanted.size() - 1 - wanted.size() / 20])};
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

using Machines = std::map<std::string, Outside>;

/// The pairs that count: what was judged on other rows than it was fitted on, or not fitted at all.
std::vector<Pair> report(Predictor& predictor, const DataSet& set, Machines& machines,
                         const Options& options) {
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
  print_score(
      fmt::format("with --cuda-version {}, nothing fitted", to_string(software_of_the_time.cuda)),
      pairs(
          rows, Half::both,
          [](const Row& row) { return row.prediction.reserved + row.prediction.outside_eager; },
          device));
  const Outside outside = machines.try_emplace(set.machine, fitted_outside(rows)).first->second;
  const auto reserved = [](const Row& row) { return row.prediction.reserved; };
  const auto with = [](double bytes) {
    return [=](const Row& row) { return row.prediction.reserved + bytes; };
  };
  print_score(fmt::format("{:.0f} MiB outside the allocator: fitted on", outside.middle),
              pairs(rows, Half::fitted, with(outside.middle), device));
  print_score("  the same, judged half", pairs(rows, Half::judged, with(outside.middle), device));
  print_score("  what is left without them, judged half",
              pairs(rows, Half::judged, reserved,
                    [&](const Row& row) { return device(row) - outside.middle; }));
  print_score(fmt::format("{:.0f} MiB, to be seldom low: fitted on", outside.safe),
              pairs(rows, Half::fitted, with(outside.safe), device));
  print_score("  the same, judged half", pairs(rows, Half::judged, with(outside.safe), device));
  if (options.rows) print_rows(rows, outside.middle);
  return pairs(rows, Half::judged, with(outside.middle), device);
}

/// Which training explains the timm sheet: the same rows as if trained otherwise.
void report_trainings(Predictor& predictor, const Options& options) {
  print_header("timm, A100-40GB: which optimizer and which cudnn.benchmark?");
  for (const char* optimizer : {"nesterov", "sgd", "momentum", "adam"}) {
    for (const double decay : {0.0, 2e-5}) {
      for (const bool benchmark : {false, true}) {
        const DataSet set =
            timm_sheet(options.folder, own_models,
                       {optimizer, decay, OptimizerImplementation::usual, benchmark});
        const std::vector<Row> rows = predict(predictor, set);
        const double outside = fitted_outside(rows).middle;
        const auto fitted = [&](const Row& row) { return row.prediction.reserved + outside; };
        print_score(fmt::format("{}, {}, benchmark {}: {:.0f} MiB outside", optimizer, decay,
                                benchmark ? "on" : "off", outside),
                    pairs(rows, Half::fitted, fitted, device));
        print_score("  the same, judged half", pairs(rows, Half::judged, fitted, device));
      }
    }
  }
}

void report_brackets(Predictor& predictor, double context_mib, const Options& options) {
  int brackets = 0, hits = 0, ceilings = 0, reached = 0, refused = 0, promised = 0;
  fmt::print("\nbatch brackets, RTX 3090 under autocast, with SchedTune's {:.0f} MiB outside\n",
             context_mib);
  for (const Bracket& bracket : read_brackets(options.folder, own_models)) {
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
  fmt::print("  hit {} of {}; ceilings reached {} of {}; false refusals {}, false fits {}\n", hits,
             brackets, reached, ceilings, refused, promised);
}

// All that the allocator has: what a process takes outside it is not in the table.
void report_fine_tunes(Predictor& predictor, const Options& options) {
  constexpr double mib_a_gib = 1024;
  std::vector<Pair> all, whole;
  fmt::print(
      "\ntorchtune's fine-tunes on one GPU; GiB of tensors, or reserved with them, of which "
      "the table is one\n    {:<46} {:>8} {:>8} {:>8} {:>8}  {}\n",
      "", "measured", "tensors", "error", "reserved", "not in the prediction");
  for (const FineTune& tune : read_fine_tunes(options.folder)) {
    const Prediction predicted = predictor.predict(tune.job, std::nullopt);
    const double tensors = predicted.tensors / mib_a_gib;
    fmt::print("    {:<46} {:>8.1f} {:>8.1f} {:>+7.1f}% {:>8.1f}  {}\n", tune.name,
               tune.measured_gib, tensors, 100 * (tensors - tune.measured_gib) / tune.measured_gib,
               predicted.reserved / mib_a_gib, tune.lacking);
    const Pair pair{tune.measured_gib, tensors, predicted.total / mib_a_gib};
    all.push_back(pair);
    if (tune.lacking.empty()) whole.push_back(pair);
  }
  print_header("torchtune's fine-tunes");
  print_score("all", all);
  print_score("those whose every setting is predicted", whole);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rows") == 0) {
      options.rows = true;
    } else if (std::strcmp(argv[i], "--trainings") == 0) {
      options.trainings = true;
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
  Machines machines;
  for (const DataSet& set : read_sets(options.folder, own_models)) {
    series.push_back({set.name, report(predictor, set, machines, options)});
    all.insert(all.end(), series.back().pairs.begin(), series.back().pairs.end());
  }
  print_header("in all, judged rows");
  print_score("", all);
  if (options.trainings) report_trainings(predictor, options);
  report_fine_tunes(predictor, options);
  report_brackets(predictor, machines.at(rtx_3090_machine).middle, options);
  if (!options.svg.empty()) std::ofstream(options.svg) << scatter_svg(series);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.folder.empty()) {
    fmt::print(
        stderr,
        "NOT RUN: no measurements given. usage: {} FOLDER [--rows] [--trainings] [--svg FILE]\n",
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
