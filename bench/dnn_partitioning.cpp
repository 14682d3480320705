// Not a timing: placements under a static memory limit against proved optima, on the graphs of
// msr-fiddle/dnn-partitioning (Tarnawski et al., NeurIPS 2020).
//
//   dnn_partitioning FOLDER [NAME...]   FOLDER holds throughput-inputs/ and
//                                       one_accelerator_optima.csv; exits 1 where a plan is more
//                                       than 1 percent above a proved optimum
//
// Their problem: every node on one accelerator or on the CPU; the sum of times, and of a node's
// output's transfer once a direction it is needed in; nodes of one colour together; the sizes of
// what is on the accelerator sum to at most the limit, at all times. As a ResidencyProblem:
//   - an operation is a colour; its step is any, since a limit that holds at all times knows no
//     order. An output that is read before it is made wraps round the step's end.
//   - outputs have no bytes: a copy stays for nothing, so that each direction is paid once.
//   - a colour's size is a storage that only its operation reads, kept from step to step. To fetch
//     it costs more than the colour can gain on the accelerator, so that it lies there throughout
//     or the colour is on the CPU: exactly their limit.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/quantile.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {
namespace {

constexpr double most_above = 0.01;

struct Node {
  std::int32_t colour = 0;
  bool accelerated = false;
  double cpu_ms = 0, accelerator_ms = 0, bytes = 0;
  double transfer_ms = 0;            // of its output
  std::set<std::int32_t> consumers;  // colours, its own left out
};

struct Graph {
  std::vector<Node> nodes;
  std::int32_t colours = 0;
};

Graph read_graph(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "cannot read {}\n", path);
    std::exit(2);
  }
  const auto json = nlohmann::json::parse(file);
  Graph graph;
  std::map<std::int64_t, std::size_t> place;
  std::map<std::int64_t, std::int32_t> colour;
  for (const auto& entry : json.at("nodes")) {
    // A node without a colour is alone in its own, which no other has.
    const auto id = entry.at("id").get<std::int64_t>();
    const auto own = entry.contains("colorClass") ? entry["colorClass"].get<std::int64_t>() : ~id;
    const auto number = static_cast<std::int32_t>(colour.size());
    const auto& supported = entry.at("supportedOnFpga");
    place[id] = graph.nodes.size();
    graph.nodes.push_back(
        {.colour = colour.try_emplace(own, number).first->second,
         .accelerated = supported.is_boolean() ? supported.get<bool>() : supported.get<int>() != 0,
         .cpu_ms = entry.at("cpuLatency").get<double>(),
         .accelerator_ms = entry.at("fpgaLatency").get<double>(),
         .bytes = entry.at("size").get<double>()});
  }
  graph.colours = static_cast<std::int32_t>(colour.size());
  for (const auto& edge : json.at("edges")) {
    Node& from = graph.nodes[place.at(edge.at("sourceId").get<std::int64_t>())];
    const Node& to = graph.nodes[place.at(edge.at("destId").get<std::int64_t>())];
    from.transfer_ms = std::max(from.transfer_ms, edge.at("cost").get<double>());
    if (to.colour != from.colour) from.consumers.insert(to.colour);
  }
  return graph;
}

/// Their definition, which owes nothing to the translation. nullopt: an unsupported node is on the
/// accelerator.
struct Judged {
  double ms = 0, bytes = 0;
  bool supported = true;
};
Judged judged(const Graph& graph, const std::vector<Device>& device) {
  const auto on = [&](std::int32_t colour) {
    return device[static_cast<std::size_t>(colour)] == Device::gpu;
  };
  Judged result;
  for (const Node& node : graph.nodes) {
    const bool here = on(node.colour);
    result.ms += here ? node.accelerator_ms : node.cpu_ms;
    if (here) result.bytes += node.bytes;
    if (here && !node.accelerated) result.supported = false;
    const bool crosses = std::any_of(node.consumers.begin(), node.consumers.end(),
                                     [&](std::int32_t colour) { return on(colour) != here; });
    if (crosses) result.ms += node.transfer_ms;
  }
  return result;
}

ResidencyProblem problem_of(const Graph& graph) {
  ResidencyProblem problem;
  const auto colours = static_cast<std::size_t>(graph.colours);
  problem.operations.resize(colours);
  std::vector<double> bytes(colours, 0);
  std::vector<double> gain(colours, 0);  // ms, at most, of a colour on the accelerator
  for (std::size_t c = 0; c < colours; ++c) {
    problem.operations[c].name = fmt::format("colour {}", c);
    problem.operations[c].engines.push_back({});
  }
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const Node& node = graph.nodes[v];
    const auto c = static_cast<std::size_t>(node.colour);
    Operation& operation = problem.operations[c];
    operation.engines.front().seconds += 1e-3 * node.accelerator_ms;
    operation.cpu_seconds += 1e-3 * node.cpu_ms;
    if (!node.accelerated) operation.pin = Pin::cpu;
    bytes[c] += node.bytes;
    gain[c] += node.cpu_ms + node.transfer_ms;
    if (node.consumers.empty() || node.transfer_ms == 0) continue;
    Item output{.name = fmt::format("output {}", v),
                .wraps = true,
                .h2d_seconds = 1e-3 * node.transfer_ms,
                .d2h_seconds = 1e-3 * node.transfer_ms};
    std::set<std::int32_t> steps = node.consumers;
    steps.insert(node.colour);
    for (const std::int32_t step : steps) {
      output.touches.push_back({step, step != node.colour, step == node.colour});
      if (step != node.colour) gain[static_cast<std::size_t>(step)] += node.transfer_ms;
    }
    problem.items.push_back(std::move(output));
  }
  for (std::size_t c = 0; c < colours; ++c) {
    if (bytes[c] == 0 || problem.operations[c].pin == Pin::cpu) continue;
    problem.items.push_back({.name = fmt::format("weights {}", c),
                             .bytes = Bytes(std::llround(bytes[c])),
                             .touches = {{static_cast<std::int32_t>(c), true, false}},
                             .wraps = true,
                             .host_at_start = true,
                             .h2d_seconds = 1e-3 * (gain[c] + 1)});
  }
  return problem;
}

struct Row {
  std::string instance;
  double fraction = 0, optimum_ms = 0, gap = 0;
};

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "cannot read {}\n", path);
    std::exit(2);
  }
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    if (cells.size() < 5 || !cells[0].starts_with("thr_")) continue;
    rows.push_back({cells[0], std::stod(cells[1]), std::stod(cells[2]), std::stod(cells[4])});
  }
  return rows;
}

std::string graph_file(const std::string& folder, const std::string& instance) {
  const bool layers = instance[4] == 'L';
  return fmt::format("{}/throughput-inputs/{}/{}.json", folder,
                     layers ? "LayerGraphs" : "OperatorGraphs", instance.substr(6));
}

void summarise(const char* what, const std::vector<double>& values) {
  fmt::print("{:<36} median {:8.4f}  90th percentile {:8.4f}  worst {:8.4f}\n", what,
             quantile(values, 0.5), quantile(values, 0.9), quantile(values, 1));
}

int compare(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<double> above, below, seconds;
  int missed = 0;
  int proved = 0;
  fmt::print("{:>12} {:>12} {:>12} {:>9} {:>9} {:>6} {:>8}  instance, limit\n", "cost ms",
             "bound ms", "optimum ms", "above %", "below %", "cuts", "s");
  for (const Row& row : read_rows(folder + "/one_accelerator_optima.csv")) {
    const bool asked =
        names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return row.instance.find(name) != std::string::npos;
        });
    if (!asked) continue;
    const Graph graph = read_graph(graph_file(folder, row.instance));
    double total = 0;
    for (const Node& node : graph.nodes) total += node.bytes;
    const Bytes limit(static_cast<std::int64_t>(std::floor(row.fraction * total + 1e-6)));
    const ResidencyProblem problem = problem_of(graph);
    const auto start = std::chrono::steady_clock::now();
    const auto solution = solve(problem, {.budget = limit, .target_gap = 1e-4});
    if (!solution) {
      fmt::print(stderr, "{}: {}\n", row.instance, render(solution.error()));
      return 2;
    }
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    const Judged is = judged(graph, solution->placement.device);
    const double ours = 1e3 * solution->evaluation.cost_seconds;
    if (!is.supported || is.bytes > static_cast<double>(limit.count()) ||
        is.ms > ours * (1 + 1e-9)) {
      fmt::print(stderr, "{}: the translation is wrong: {} ms, {} bytes\n", row.instance, is.ms,
                 is.bytes);
      return 2;
    }
    const double bound = 1e3 * solution->cost_lower_bound_seconds;
    const bool known = row.gap <= 1e-6;
    const double over = 100 * (is.ms / row.optimum_ms - 1);
    const double under = 100 * (1 - bound / row.optimum_ms);
    fmt::print("{:12.4f} {:12.4f} {:12.4f} {:9.4f} {:9.4f} {:6} {:8.3f}  {} {:.2f}{}\n", is.ms,
               bound, row.optimum_ms, over, under, solution->cuts, seconds.back(), row.instance,
               row.fraction, known ? "" : " (not proved)");
    std::fflush(stdout);
    if (!known) continue;
    above.push_back(over);
    below.push_back(under);
    missed += over > 100 * most_above ? 1 : 0;
    proved += solution->proved_optimal ? 1 : 0;
  }
  fmt::print("{} instances with a proved optimum, percent of it:\n", above.size());
  summarise("plan above the optimum", above);
  summarise("bound below the optimum", below);
  summarise("seconds (all instances)", seconds);
  fmt::print("proved optimal by ourselves: {}; more than {} percent above: {}\n", proved,
             100 * most_above, missed);
  return missed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: dnn_partitioning FOLDER [NAME...]\n");
    return 2;
  }
  try {
    return stowage::compare(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
