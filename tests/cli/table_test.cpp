#include "cli/output/table.hpp"

#include <doctest/doctest.h>

#include "cli/output/report.hpp"

namespace stowage {

namespace {

Table shares_of(std::vector<std::int64_t> bytes) {
  Table table{.columns = {{"Size", "bytes"}, {"What", "name"}}};
  std::int64_t sum = 0;
  for (const std::int64_t count : bytes) {
    table.rows.push_back({{Bytes(count), "part " + std::to_string(table.rows.size())}});
    sum += count;
  }
  table.rows.push_back({{Bytes(sum), std::string("all")}, true});
  return table;
}

}  // namespace

TEST_CASE("one scale a column, numbers right, names last, rounded rows add up") {
  // 0.35 + 0.35 + 0.35 KiB = 1.05: printed alone they would read 0.4 * 3 = 1.1 (1.0 or 1.2 else).
  const std::string text = plain_text(shares_of({1000 + 358, 358, 358 + 1024 * 1000}));
  CHECK(text ==
        "         Size  What\n"
        "      1.3 KiB  part 0\n"
        "      0.4 KiB  part 1\n"
        "  1,000.3 KiB  part 2\n"
        "  -----------\n"
        "  1,002.0 KiB  all\n");
}

TEST_CASE("printed rows add up to the printed total whatever the sizes") {
  std::uint64_t state = 2026;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>(state >> 33);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 1 + round % 9; ++i) sizes.push_back(next() % (1LL << (10 + round % 30)));
    const std::string text = plain_text(shares_of(sizes));
    CAPTURE(text);
    // Sizes to tenths or hundredths of one unit: compare as integers of the last digit.
    std::vector<std::int64_t> printed;
    std::size_t at = text.find('\n') + 1;
    while (at < text.size()) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      at += line.size() + 1;
      if (line.find('-') != std::string::npos) continue;
      std::string digits;
      for (const char c : line.substr(0, line.find_first_of("BKMG"))) {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) digits += c;
      }
      printed.push_back(std::stoll(digits));
    }
    REQUIRE(printed.size() == sizes.size() + 1);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i + 1 < printed.size(); ++i) sum += printed[i];
    CHECK(sum == printed.back());
  }
}

TEST_CASE("a total carries on what the last one had") {
  Table table{.columns = {{"", "bytes"}, {"", "name"}}};
  table.rows.push_back({{Bytes(1400), std::string("a")}});
  table.rows.push_back({{Bytes(1400), std::string("b")}});
  table.rows.push_back({{Bytes(2800), std::string("tensors")}, true});
  table.rows.push_back({{Bytes(1400), std::string("c")}});
  table.rows.push_back({{Bytes(4200), std::string("device")}, true});
  // 1400 B is 1.37 KiB: 1.4 + 1.3 = 2.7, 2.7 + 1.4 = 4.1.
  CHECK(plain_text(table) ==
        "  1.4 KiB  a\n"
        "  1.3 KiB  b\n"
        "  -------\n"
        "  2.7 KiB  tensors\n"
        "  1.4 KiB  c\n"
        "  -------\n"
        "  4.1 KiB  device\n");
}

TEST_CASE("long tables fold into others, with the others' sum") {
  Table table{.columns = {{"Size", "bytes"}, {"Name", "name"}}};
  for (int i = 0; i < 6; ++i) table.rows.push_back({{Bytes(100 - i), "t" + std::to_string(i)}});
  CHECK(plain_text(folded(table, 2)) ==
        "   Size  Name\n"
        "  100 B  t0\n"
        "   99 B  t1\n"
        "  386 B  4 others\n");
  CHECK(folded(table, 5).rows.size() == 6);  // one more row is no longer than "1 others"
  CHECK(folded(table, 4).rows.size() == 5);
}

TEST_CASE("a long text is shortened in the middle, by characters") {
  CHECK(shortened("short", 5) == "short");
  CHECK(shortened("a longer name", 9) == "a l...ame");
  CHECK(shortened("a longer name", 10) == "a lo...ame");
  CHECK(shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5) == "\xc3\xa9...\xc3\xa9");
  CHECK(shortened("anything", 2) == "..");
}

TEST_CASE("a long text folds at blanks, then behind its marks, then anywhere") {
  using Lines = std::vector<std::string>;
  CHECK(folded_text("short", 5) == Lines{"short"});
  CHECK(folded_text("GeForce RTX 4060 Laptop", 12) == Lines{"GeForce RTX", "4060 Laptop"});
  CHECK(folded_text("encoder.layer.11.attention", 18) == Lines{"encoder.layer.11.", "attention"});
  CHECK(folded_text("abcdefghij", 4) == Lines{"abcd", "efgh", "ij"});
  CHECK(folded_text("", 4) == Lines{""});
  CHECK(folded_text("\xc3\xa9\xc3\xa9\xc3\xa9", 2) == Lines{"\xc3\xa9\xc3\xa9", "\xc3\xa9"});
  // More than four lines of a text longer than 256 columns are shortened first.
  CHECK(folded_text(std::string(1000, 'x') + "end", 64).size() == 4);
  CHECK(folded_text(std::string(1000, 'x') + "end", 64).back().ends_with("xend"));
  CHECK(folded_text(std::string(250, 'x'), 10).size() == 25);
}

TEST_CASE("with a width texts fold, then columns go, and no figure is cut") {
  Table table{.columns = {{"Size", "bytes"}, {"Layer", "layer"}, {"Name", "name"}}};
  table.rows.push_back({{Bytes(1536), std::string("encoder.layer.11.attention"),
                         std::string("a_name_of_twenty_one_")}});
  CHECK(plain_text(table, 60) ==
        "     Size  Layer                       Name\n"
        "  1.5 KiB  encoder.layer.11.attention  a_name_of_twenty_one_\n");
  CHECK(plain_text(table, 54) ==
        "     Size  Layer                 Name\n"
        "  1.5 KiB  encoder.layer.11.     a_name_of_twenty_one_\n"
        "           attention\n");
  // Several texts without room for 20 columns each stand below their row's figures.
  CHECK(plain_text(table, 36) ==
        "     Size\n"
        "  1.5 KiB\n"
        "    Layer:\n"
        "    encoder.layer.11.attention\n"
        "    Name: a_name_of_twenty_one_\n");
}

TEST_CASE("a table of texts alone stands below its first text where there is no room") {
  Table table{.columns = {{"Operator", "op"}, {"Inputs", "inputs"}, {"Meaning", "meaning"}}};
  table.rows.push_back({{std::string("conv1d"), std::string("1 to 3"),
                         std::string("1-D convolution over [channels, length]")}});
  CHECK(plain_text(table, 30) ==
        "  conv1d\n"
        "    Inputs: 1 to 3\n"
        "    Meaning: 1-D convolution\n"
        "    over [channels, length]\n");
}

TEST_CASE("columns that are not essential leave a narrow screen from the right, which is said") {
  Table table{.columns = {{"nvidia-smi", "nvml"},
                          {"CUDA total", "cuda", true},
                          {"fp32 TFLOPS", "fp32"},
                          {"Link GB/s", "link"},
                          {"Name", "name"}}};
  table.rows.push_back({{24576_MiB, 24248_MiB, Number{35.6, 1}, Number{25, 1},
                         std::string("GeForce RTX 3090 Ti Super Edition")}});
  CHECK(plain_text(table, 80) ==
        "  nvidia-smi  CUDA total  fp32 TFLOPS  Link GB/s  Name\n"
        "   24.00 GiB   23.68 GiB         35.6       25.0  GeForce RTX 3090 Ti Super\n"
        "                                                  Edition\n");
  CHECK(plain_text(table, 66) ==
        "                   CUDA    fp32  Link\n"
        "  nvidia-smi      total  TFLOPS  GB/s  Name\n"
        "   24.00 GiB  23.68 GiB    35.6  25.0  GeForce RTX 3090 Ti Super\n"
        "                                       Edition\n");
  CHECK(plain_text(table, 58) ==
        "                   CUDA    fp32\n"
        "  nvidia-smi      total  TFLOPS  Name\n"
        "   24.00 GiB  23.68 GiB    35.6  GeForce RTX 3090 Ti Super\n"
        "                                 Edition\n"
        "  (no room for Link GB/s)\n");
  CHECK(plain_text(table, 30) ==
        "                   CUDA\n"
        "  nvidia-smi      total  Name\n"
        "   24.00 GiB  23.68 GiB  GeForce\n"
        "                         RTX 3090\n"
        "                         Ti Super\n"
        "                         Edition\n"
        "  (no room for fp32 TFLOPS, Link GB/s)\n");
}

TEST_CASE("csv is exact and quoted, markdown escapes its bars") {
  Table table{.columns = {{"Size", "bytes"}, {"Name", "name"}, {"Time", "seconds"}}};
  table.rows.push_back({{Bytes(1536), std::string("a,\"b\"|c"), Duration{0.25}}});
  CHECK(csv(table) == "bytes,name,seconds\n1536,\"a,\"\"b\"\"|c\",0.25\n");
  CHECK(markdown(table) ==
        "| Size | Name | Time |\n|---:|---|---:|\n| 1.5 KiB | a,\"b\"\\|c | 250.00 ms |\n");
}

TEST_CASE("digits are grouped") {
  CHECK(grouped_digits(0) == "0");
  CHECK(grouped_digits(999) == "999");
  CHECK(grouped_digits(1000) == "1,000");
  CHECK(grouped_digits(206538153) == "206,538,153");
  CHECK(grouped_digits(-1234567) == "-1,234,567");
}

TEST_CASE("json keeps its order, its integers and other people's bytes") {
  Report report;
  report.json = {{"b", Bytes(1LL << 40)}, {"a", Json::Array{1, 2.5, true, Json()}}};
  report.json.emplace_back("text", std::string("caf\xe9"));
  CHECK(render(report, Format::json, {}) ==
        "{\n  \"schema_version\": 1,\n  \"b\": 1099511627776,\n  \"a\": [\n    1,\n    2.5,\n"
        "    true,\n    null\n  ],\n  \"text\": \"caf\xef\xbf\xbd\"\n}\n");
}

TEST_CASE("colour only where it is asked for") {
  Report report;
  report.say("fits", Tone::good);
  CHECK(render(report, Format::table, {}) == "fits\n");
  CHECK(render(report, Format::table, {.colour = true}) == "\x1b[32mfits\x1b[0m\n");
}

}  // namespace stowage
