// The table `certificate` of a plan file: it reads back as it was written, and mistakes have
// places.
#include "planner/plan/certificate_table.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>

namespace stowage {
namespace {

/// Nodes n0 to n4, storages "s 0" to "s 9".
StepGraph small_step() {
  StepGraph step;
  for (int i = 0; i < 5; ++i) {
    KernelNode node;
    node.name = fmt::format("n{}", i);
    step.nodes.push_back(node);
  }
  for (int i = 0; i < 10; ++i) {
    Storage storage;
    storage.name = fmt::format("s {}", i);
    step.storages.push_back(storage);
  }
  return step;
}

struct Answer {
  Certificate certificate;
  std::string mistakes;  ///< "line:column: message", one a line
};

Answer read(const std::string& text) {
  const auto source = std::make_shared<const SourceText>(SourceText{"c", text});
  std::vector<TableLine> rows;
  int line = 0;
  for (std::size_t begin = 0; begin < source->text.size();) {
    const std::size_t end = source->text.find('\n', begin);
    ++line;
    const std::string_view row = std::string_view(source->text).substr(begin, end - begin);
    begin = end + 1;
    if (row.starts_with("  ") && !row.starts_with("  #")) rows.push_back({line, row.substr(2)});
  }
  TableMistakes mistakes(source);
  Answer answer{read_certificate(rows, small_step(), mistakes), ""};
  for (const Diagnostic& mistake : std::move(mistakes).taken()) {
    answer.mistakes +=
        fmt::format("{}:{}: {}\n", mistake.span.line, mistake.span.column, mistake.message);
  }
  return answer;
}

Certificate full_certificate() {
  Certificate certificate;
  certificate.granule = 256_B;
  certificate.workspaces = {{1, 512_B}, {4, 1_GiB}};
  BranchLeaf priced{.steps = {{0, 1.0 / 3}, {4, 2.5e-10}}, .limits = {{0, 1e-300}, {1, 7}}};
  certificate.cost = TreeProof{
      {.compute_on_gpu = true, .keep_state = true},
      {BranchNode{{{2, 4096, {{0, 2}, {5, 5}, {7, 8}}}}, Fixing{.subject = 3, .after = 1}},
       BranchNode{{{2, 1, {}}}, priced}, BranchNode{{}, Fixing{.subject = 4}},
       BranchNode{{}, BranchLeaf{}},
       BranchNode{{{3, std::int64_t{1} << 60, {{9, 9}}}}, BranchLeaf{.limits = {{2, 1}}}}}};
  certificate.transfers = TreeProof{{}, {BranchNode{}}};
  certificate.step = LaneProof{{}, 0.5, 0.25, 0.125, 1.0 / 7, {{3, 1e-12}}};
  return certificate;
}

}  // namespace

TEST_CASE("certificate: it reads back as it was written") {
  Certificate certificate = full_certificate();
  const std::string text = write_certificate(certificate, small_step());
  CHECK(text ==
        "certificate: |\n"
        "  # kind and what docs/plan-file.md says of it\n"
        "  granule 256\n"
        "  workspace 512 n1\n"
        "  workspace 1073741824 n4\n"
        "  bound cost computation state\n"
        "  round 2 4096 0-2,5,7-8\n"
        "  gap 1 s 3\n"
        "  round 2 1 -\n"
        "  leaf\n"
        "  price 0 0.3333333333333333\n"
        "  price 4 2.5e-10\n"
        "  limit 0 1e-300\n"
        "  limit 1 7\n"
        "  node n4\n"
        "  leaf\n"
        "  round 3 1152921504606846976 9\n"
        "  leaf\n"
        "  limit 2 1\n"
        "  bound transfers\n"
        "  leaf\n"
        "  bound lanes\n"
        "  weights 0.5 0.25 0.125 0.14285714285714285\n"
        "  price 3 1e-12\n");
  Answer answer = read(text);
  CHECK(answer.mistakes == "");
  CHECK(answer.certificate == certificate);
  certificate.step = SplitProof{{.updates_on_gpu = true}, 2, 0.25, 0.75, 0.125};
  answer = read(write_certificate(certificate, small_step()));
  CHECK(answer.mistakes == "");
  CHECK(answer.certificate == certificate);
  CHECK(read(write_certificate({}, small_step())).certificate == Certificate{});
}

TEST_CASE("certificate: mistakes are shown at their place") {
  const auto mistakes = [](const std::string& rows) {
    std::string text;
    std::istringstream lines(rows);
    for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
    return read(text).mistakes;
  };
  CHECK(mistakes("prize 1 2") == "1:3: a certificate has no rows 'prize'\n");
  CHECK(mistakes("workspace 0 n1") ==
        "1:13: the workspace must be from 1 to 4611686018427387904\n");
  CHECK(mistakes("granule 512") == "1:11: the granule must be from 2 to 256\n");
  for (const std::string_view bytes : {"0", "1", "-1", "-9223372036854775808", "300"}) {
    CHECK(mistakes(fmt::format("granule {}", bytes)) ==
          "1:11: the granule must be from 2 to 256\n");
  }
  CHECK(mistakes("granule 1e3") == "1:11: the granule must be an integer, not '1e3'\n");
  CHECK(mistakes("granule") == "1:10: the granule must be an integer, not ''\n");
  CHECK(mistakes("granule 24") == "1:11: a granule divides the arena's, and is given once\n");
  CHECK(mistakes("granule 256\ngranule 256") ==
        "2:11: a granule divides the arena's, and is given once\n");
  CHECK(mistakes("workspace 1 n9") == "1:15: the step has no node 'n9'\n");
  CHECK(mistakes("workspace 1 n1\nworkspace 1 n1") ==
        "2:15: this node is there twice or out of order\n");
  CHECK(mistakes("bound price") ==
        "1:9: 'price' is none of the bounds cost, transfers, lanes, split\n");
  CHECK(mistakes("bound cost updates updates\nleaf")
            .starts_with("1:22: 'updates' is no further word of a bound's scope\n"));
  CHECK(mistakes("bound lanes\nbound split") == "2:9: there are two bounds 'of the step'\n");
  CHECK(mistakes("bound cost\nleaf\nbound cost") == "3:9: there are two bounds 'cost'\n");
  CHECK(mistakes("leaf") == "1:3: such a row belongs to 'bound cost' or 'bound transfers'\n");
  CHECK(mistakes("price 1 1") == "1:3: such a row belongs to a leaf or 'bound lanes'\n");
  CHECK(mistakes("bound lanes\nlimit 0 1") == "2:3: such a row belongs to a leaf\n");
  CHECK(mistakes("bound split\nweights 1 1 1 1") == "2:3: such a row belongs to 'bound lanes'\n");
  CHECK(mistakes("beside 1 1 n1") == "1:3: such a row belongs to 'bound split'\n");
  CHECK(mistakes("bound cost\nleaf\nprice 5 1") == "3:9: the step must be from 0 to 4\n");
  CHECK(mistakes("bound cost\nleaf\nprice 4 0").starts_with("3:11: the price must be at least "));
  CHECK(mistakes("bound cost\nleaf\nprice 4 inf") ==
        "3:11: the price must be a number, not 'inf'\n");
  CHECK(mistakes("bound cost\nleaf\nprice 4 1 2") ==
        "3:13: '2' is more than the row has cells for\n");
  CHECK(mistakes("bound cost\nleaf\nlimit -1 1") ==
        "3:9: the rounded limit must be from 0 to 2147483647\n");
  CHECK(mistakes("bound cost\nround 1 0 -\nleaf") ==
        "2:11: the divisor must be from 1 to 2305843009213693952\n");
  CHECK(mistakes("bound cost\nround 1 1 3-2\nleaf")
            .starts_with("2:13: '3-2' is no further range of storages\n"));
  CHECK(mistakes("bound cost\nround 1 1 3,3\nleaf")
            .starts_with("2:13: '3' is no further range of storages\n"));
  CHECK(mistakes("bound cost\nround 1 1 0-10\nleaf")
            .starts_with("2:13: '0-10' is no further range of storages\n"));
  CHECK(mistakes("bound cost\ngap 1 s 77\nleaf\nleaf")
            .starts_with("2:9: the step has no storage 's 77'\n"));
  CHECK(mistakes("bound cost\nnode n1\nleaf") == "1:3: 1 branches of this bound are missing\n");
  CHECK(mistakes("bound cost") == "1:3: 1 branches of this bound are missing\n");
  CHECK(mistakes("bound cost\nleaf\nleaf") ==
        "3:3: the branches before this row cover every plan\n");
  CHECK(mistakes("bound cost\nleaf\nround 1 1 -") ==
        "3:3: the branches before this row cover every plan\n");
}

TEST_CASE("certificate: rounded limits keep their ranges, whatever these count") {
  // As numbers, 160,000 rows of 1,000 storages would take 640 MB.
  StepGraph step = small_step();
  step.storages.resize(1000);
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    step.storages[i].name = fmt::format("s {}", i);
  }
  const auto source = std::make_shared<const SourceText>(SourceText{"c", ""});
  std::vector<TableLine> rows{{1, "bound cost"}};
  for (int i = 0; i < 160'000; ++i) rows.push_back({i + 2, "round 1 1 0-996,998-999"});
  rows.push_back({160'002, "leaf"});
  TableMistakes mistakes(source);
  const Certificate read = read_certificate(rows, step, mistakes);
  CHECK(std::move(mistakes).taken().empty());
  REQUIRE(read.cost.has_value());
  REQUIRE(read.cost->tree.size() == 1);
  const std::vector<RoundedLimit>& limits = read.cost->tree.front().limits;
  REQUIRE(limits.size() == 160'000);
  std::size_t kept = 0;
  for (const RoundedLimit& limit : limits) kept += limit.counted.capacity();
  CHECK(kept == 320'000);
  CHECK(limits.back().counts(996));
  CHECK_FALSE(limits.back().counts(997));
  CHECK(limits.back().counts(998));
  CHECK_FALSE(limits.back().counts(1000));
}

TEST_CASE("certificate: ascending numbers become ranges that do not touch") {
  CHECK(ranges_of({}).empty());
  CHECK(ranges_of({4}) == std::vector<StorageRange>{{4, 4}});
  CHECK(ranges_of({0, 1, 2, 4, 6, 7}) == std::vector<StorageRange>{{0, 2}, {4, 4}, {6, 7}});
}

}  // namespace stowage
