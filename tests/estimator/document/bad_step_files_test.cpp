// What is wrong with a step file is told with its place; nothing else becomes of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "estimator/document/make_document.hpp"
#include "estimator/document/read_graph.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

std::string small_step() {
  const ModelGraph model = testing::shipped("mlp");
  ChosenStep chosen = *choose_step(model, {.kernels = KernelSet::stowage});
  chosen.lowering.micro_batches = 3;
  auto document = make_document(model, chosen, Runtime::stowage, std::nullopt);
  return write_step(*document);
}

std::string mistakes_of(const std::string& text) {
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"s.json", text}));
  return read ? "" : render(read.error());
}

/// The step with the first `before` replaced.
std::string changed(std::string text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return text.replace(at, before.size(), after);
}

std::string mistakes_with(const std::string& before, const std::string& after) {
  static const std::string text = small_step();
  return mistakes_of(changed(text, before, after));
}

}  // namespace

TEST_CASE("what is no JSON is refused where it stops being JSON") {
  CHECK(mistakes_of("{\n\"format\": \"stowage-step\",\n\"version\" 1}") ==
        "s.json:3:11: error: this is not JSON: syntax error while parsing object separator - "
        "unexpected number literal; expected ':'\n"
        "  \"version\" 1}\n"
        "            ^\n");
  CHECK(mistakes_of("") != "");
  CHECK(mistakes_of("{\"a\": 1e999}") != "");
  CHECK(mistakes_of("{\"a\": 99999999999999999999}") ==
        "s.json:1:7: error: the number is past 64 bits\n"
        "  {\"a\": 99999999999999999999}\n"
        "        ^\n");
  CHECK(mistakes_of("{\"a\": 1, \"a\": 2}") ==
        "s.json:1:10: error: the same member stands here twice\n"
        "  {\"a\": 1, \"a\": 2}\n"
        "           ^\n");
  CHECK(mistakes_of(std::string(100'000, '[')).find("lists and objects nest at most 32 deep") !=
        std::string::npos);
}

TEST_CASE("no list is read that costs more than its length") {
  std::string many = "\"attributes\": [{\"a0\": 1";
  for (int i = 1; i <= 100; ++i) many += fmt::format(", \"a{}\": 1", i);
  CHECK(mistakes_with("\"attributes\": [", many + "},")
            .find("a row of 'attributes' has 101 members; 100 at most are read") !=
        std::string::npos);
  CHECK(mistakes_with("\"batch\": null", "\"batch\": 1000000001")
            .find("'batch' must be an integer from 1 to 1000000000") != std::string::npos);
}

TEST_CASE("another format or version is named") {
  CHECK(mistakes_with("\"version\": 1", "\"version\": 2") ==
        "s.json:3:12: error: this program reads version 1 of step files, not the number 2\n"
        "  \"version\": 2,\n"
        "             ^\n"
        "  stowage lower writes one from its description\n");
  CHECK(mistakes_with("\"stowage-step\"", "\"stowage-stop\"") ==
        "s.json:2:11: error: 'format' must be \"stowage-step\"\n"
        "  \"format\": \"stowage-stop\",\n"
        "            ^~~~~~~~~~~~~~\n");
}

TEST_CASE("misspelt members and words get a suggestion") {
  CHECK(mistakes_with("\"precision\"", "\"presicion\"") ==
        "s.json:1:1: error: a step file lacks 'precision'\n"
        "  {\n"
        "  ^\n");
  CHECK(mistakes_with("\"seq\": null", "\"sec\": null") ==
        "s.json:9:1: error: a step file has no 'sec'\n"
        "  \"sec\": null,\n"
        "  ^~~~~\n"
        "  did you mean 'seq'?\n");
  CHECK(mistakes_with("\"mode\": \"train\"", "\"mode\": \"trian\"") ==
        "s.json:15:9: error: 'mode' cannot be 'trian'\n"
        "  \"mode\": \"trian\",\n"
        "          ^~~~~~~\n"
        "  did you mean 'train'?\n");
  CHECK(mistakes_with("\"layout\": \"nchw\"", "\"layout\": 3") ==
        "s.json:21:11: error: 'layout' must be a text, not the number 3\n"
        "  \"layout\": 3,\n"
        "            ^\n");
}

TEST_CASE("numbers keep to their range") {
  for (const char* const number : {"-1", "1.5", "9999999999", "\"1\"", "null"}) {
    CAPTURE(number);
    CHECK(mistakes_with("\"micro_batches\": 3", fmt::format("\"micro_batches\": {}", number))
              .find("'micro_batches' must be an integer from 1 to 1000000") != std::string::npos);
  }
  CHECK(mistakes_with("\"host_state_bytes\": 0", "\"host_state_bytes\": -4")
            .find("'host_state_bytes' must be an integer from 0") != std::string::npos);
}

TEST_CASE("recomputed values are rows of a name and perhaps a node, in order") {
  const auto with_rows = [](const std::string& rows) {
    return mistakes_with("\"micro_batches\": 3,",
                         "\"micro_batches\": 3, \"recomputed\": " + rows + ",");
  };
  for (const std::string rows : {"3", "{}", "[3]", "[[]]", "[[3]]", "[[\"\"]]", "[[null]]",
                                 "[[\"a\", 3]]", "[[\"a\", \"b\", \"c\"]]"}) {
    CAPTURE(rows);
    CHECK(with_rows(rows).starts_with("s.json:"));
  }
  for (const char* const rows :
       {"[[\"a\"], [\"a\"]]", "[[\"b\"], [\"a\"]]", "[[\"a\", \"n\"], [\"a\", \"m\"]]"}) {
    CAPTURE(rows);
    CHECK(with_rows(rows).find("recomputed values are in ascending order, each once") !=
          std::string::npos);
  }
}

TEST_CASE("the modules that ran are rows of a path, a kind and inputs") {
  const auto with_row = [](const std::string& row) {
    return mistakes_with("\"warnings\": ", "\"modules\": [\n" + row + "],\n\"warnings\": ");
  };
  CHECK(with_row("[\"a\", \"module\", []]").empty());
  const auto is_refused = [&](const std::string& row, const std::string& message) {
    CAPTURE(row);
    CHECK(with_row(row).find("error: " + message + "\n") != std::string::npos);
  };
  is_refused("[\"\", \"module\", []]", "a module's path is empty");
  is_refused("[\"a\", \"list\", []]", "a module's kind cannot be 'list'");
  is_refused("[\"a\", \"module\", 3]", "a module's inputs must be a list, not the number 3");
  is_refused(
      "[\"a\", \"module\", [[-1, 0, 0, -1]]]",
      "an input's number must be an integer from 0 to 1152921504606846976, not the number -1");
  CHECK(with_row("[\"a\", \"module\", [[0, 9999, 0, -1]]]")
            .find("a storage's number must be below ") != std::string::npos);
}

TEST_CASE("a step that repeats too often is refused before it is built") {
  std::string text = changed(small_step(), "\"micro_batches\": 3", "\"micro_batches\": 1000000");
  text = changed(text, "\"times\": 2", "\"times\": 999999");
  const std::string mistakes = mistakes_of(text);
  CHECK(mistakes.find("at most are read") != std::string::npos);
  CHECK(mistakes.find("error: the step has") != std::string::npos);
}

TEST_CASE("control characters do not reach the terminal by way of a name") {
  CHECK(mistakes_with("\"model\": \"mlp\"", "\"model\": \"m\\u001b[2Jlp\"") ==
        "s.json:5:10: error: 'model' holds a control character\n"
        "  \"model\": \"m\\u001b[2Jlp\",\n"
        "           ^~~~~~~~~~~~~~\n");
}

TEST_CASE("a graph that breaks what everybody relies on is refused by name") {
  const auto has = [](const std::string& mistakes, const char* what) {
    CAPTURE(mistakes);
    return mistakes.find(what) != std::string::npos;
  };
  const std::string text = small_step();
  CHECK(has(mistakes_with("\"losses\": [", "\"losses\": [0,0,"), "'losses' has 4 tensors"));
  CHECK(has(mistakes_with("\"gradients\": [", "\"gradients\": [0,0,"), "'gradients' has"));
  CHECK(has(mistakes_with("\"output\": [", "\"output\": [99999999,0,"), "a storage's number"));
}

TEST_CASE("a call that does not keep to its kernel's signature is refused by name") {
  const auto has = [](const std::string& mistakes, const char* what) {
    CAPTURE(mistakes);
    return mistakes.find(what) != std::string::npos;
  };
  CHECK(has(
      mistakes_with("\"relu_forward\"", "\"relu_backward\""),
      "the step: node 'relu_1.forward@0' calls relu_backward, which reads 1 tensor where it takes "
      "y, dy"));
  CHECK(has(mistakes_with("\"relu_forward\"", "\"dropout_forward\""),
            "calls dropout_forward, which writes 1 tensor where it takes y over x, mask: mask"));
  CHECK(has(mistakes_with("\"relu_forward\"", "\"iota\""), "reads 1 tensor where it takes none"));
}

TEST_CASE("a kernel of another program is kept by its name") {
  const std::string text = changed(small_step(), "\"relu_forward\"", "\"triton_fused_relu\"");
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"s.json", text}));
  REQUIRE(read);
  int foreign = 0;
  for (const KernelNode& node : read->graph->nodes) {
    if (node.kernel != Kernel::foreign) continue;
    ++foreign;
    CHECK(kernel_name(node) == "triton_fused_relu");
  }
  CHECK(foreign > 0);
  CHECK(write_step(*read) == text);
}

TEST_CASE("a step file is recognised by its first lines") {
  CHECK(is_step_file(" \n{\"format\": \"stowage-step\"}"));
  CHECK_FALSE(is_step_file("{name: flow, layers: [relu]}"));
  CHECK_FALSE(is_step_file("name: \"stowage-step\""));
  CHECK_FALSE(is_step_file(""));
}

}  // namespace stowage
