// Descriptions based on others: what is followed, what is refused, and where the message points.
#include "estimator/model/variant.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

constexpr std::string_view base_text = R"(model: base
source: a book
arguments: {width: 4, act: relu}
symbols: {seq: 8}
inputs:
  x: {shape: [batch, seq, 3]}
layers:
  - linear: {name: fc, features: width}
)";

/// A folder of descriptions, gone with the object.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stowage-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    write("base.yaml", base_text);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string directory() const { return path_.string(); }

  [[nodiscard]] Result<ModelGraph> load(const std::string& name,
                                        const ModelOptions& command_line = {}) const {
    auto found = find_model(name, directory());
    if (!found) return tl::unexpected(std::move(found.error()));
    return load_model(found->source, overridden(found->options, command_line));
  }
  [[nodiscard]] std::string outcome(const std::string& name,
                                    const ModelOptions& command_line = {}) const {
    const auto model = load(name, command_line);
    if (!model) return render(model.error());
    return fmt::format("{} ({}): {}", model->name, model->source,
                       to_string(model->tensor(model->output).type.shape));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a variant is its base with other arguments") {
  const Folder folder;
  folder.write("wide.yaml",
               "model: wide\nsource: another book\nbased_on: base\narguments: {width: 16}\n");
  folder.write("wider.yaml",
               "model: wider\nbased_on: wide\narguments: {width: 64}\nsymbols: {seq: 32}\n");
  folder.write("near.yaml", "model: near\nbased_on: below/wide.yaml\n");
  folder.write("below/wide.yaml", "model: wide\nsource: another book\nbased_on: wide\n");
  CHECK(folder.outcome("base") == "base (a book): [batch, 8, 4]");
  CHECK(folder.outcome("wide") == "wide (another book): [batch, 8, 16]");
  CHECK(folder.outcome("wider") == "wider (another book): [batch, 32, 64]");
  CHECK(folder.outcome(folder.path("near.yaml")) == "near (another book): [batch, 8, 16]");
  CHECK(folder.outcome("wide", {.seq = 5, .arguments = {{"width", "7"}}}) ==
        "wide (another book): [batch, 5, 7]");
  CHECK(folder.outcome("base", {.arguments = {{"seq", "12"}}}) == "base (a book): [batch, 12, 4]");
}

TEST_CASE("what a variant gets wrong is shown in its own file") {
  const Folder folder;
  folder.write("a.yaml", "model: a\nbased_on: bse\n");
  CHECK(folder.outcome("a") == folder.path("a.yaml") +
                                   ":2:11: error: there is no model 'bse'\n"
                                   "  based_on: bse\n            ^~~\n  did you mean 'base'?\n");
  folder.write("b.yaml", "model: b\nbased_on: base\narguments: {wdth: 3}\n");
  CHECK(folder.outcome("b") == folder.path("b.yaml") +
                                   ":3:13: error: the model has no argument or symbol 'wdth'\n"
                                   "  arguments: {wdth: 3}\n              ^~~~\n"
                                   "  did you mean 'width'?\n");
  folder.write("c.yaml", "model: c\nbased_on: base\narguments: {width: tall}\nlayers: [relu]\n");
  CHECK(folder.outcome("c") ==
        folder.path("c.yaml") +
            ":4:1: error: 'layers' cannot stand in a description that is based on another\n"
            "  layers: [relu]\n  ^~~~~~\n  it has model, source, based_on, arguments, symbols\n");
  folder.write("d.yaml", "model: d\nbased_on: base\narguments: {width: tall}\n");
  CHECK(folder.outcome("d") ==
        folder.path("d.yaml") +
            ":3:13: error: 'width' takes a value like its default, the number 4, not "
            "'tall'\n  arguments: {width: tall}\n              ^~~~~\n");
  folder.write("e.yaml", "model: e\nbased_on: base\nsymbols: {seq: 0}\n");
  CHECK(folder.outcome("e").find("e.yaml:3:11: error: 'seq' takes an integer between 1 and") !=
        std::string::npos);
}

TEST_CASE("a mistake that a given value makes in the base is noted with that value") {
  const Folder folder;
  folder.write("f.yaml", "model: f\nbased_on: base\narguments: {width: 0}\n");
  const std::string text = folder.outcome("f");
  CHECK(text.starts_with(folder.path("base.yaml") + ":8:"));
  CHECK(text.ends_with("\n" + folder.path("f.yaml") +
                       ":3:13: note: 'width' is 0 here\n"
                       "  arguments: {width: 0}\n              ^~~~~\n"));
  CHECK(folder.outcome("base", {.arguments = {{"width", "0"}}})
            .ends_with("\n<arguments>: note: 'width' is 0 here\n"));
}

TEST_CASE("bases that lead back to themselves, or on and on, are refused") {
  const Folder folder;
  folder.write("first.yaml", "model: first\nbased_on: second\n");
  folder.write("second.yaml", "model: second\nbased_on: first\n");
  CHECK(folder.outcome("first").find("error: more than 8 descriptions based on one another\n") !=
        std::string::npos);
  folder.write("stdin.yaml", "model: x\nbased_on: '-'\n");
  CHECK(folder.outcome("stdin").find("error: a base cannot be '-'") != std::string::npos);
}

TEST_CASE("a base is read from the catalogue or from the variant's own folder, nowhere else") {
  const Folder folder;
  const auto based_on = [&](const std::string& base) {
    folder.write("sent/model.yaml", "model: sent\nbased_on: " + base + "\n");
    const std::string text = folder.outcome(folder.path("sent/model.yaml"));
    return text.substr(text.find("error: "));
  };
  const auto elsewhere = [](const std::string& base) {
    return "error: the base '" + base +
           "' is not in the folder of this description\n  based_on: " + base + "\n            " +
           std::string(1, '^') + std::string(base.size() - 1, '~') +
           "\n  a base is one that 'stowage models' lists, or a file beside the description\n";
  };
  folder.write("secret.yaml", "top: secret\n");
  const std::string secret = folder.path("secret.yaml");
  CHECK(based_on(secret) == elsewhere(secret));
  CHECK(based_on("../secret.yaml") == elsewhere("../secret.yaml"));
  CHECK(based_on("../absent.yaml") == elsewhere("../absent.yaml"));
  folder.write("sent/below/x", "");
  CHECK(based_on("below/../../secret.yaml") == elsewhere("below/../../secret.yaml"));
  std::filesystem::create_symlink(secret, folder.path("sent/link.yaml"));
  CHECK(based_on("link.yaml") == elsewhere("link.yaml"));
  CHECK(based_on("./base.yaml").starts_with("error: there is no file '"));
  const std::string pipe = folder.path("sent/pipe.yaml");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(based_on("pipe.yaml").starts_with("error: '" + pipe + "' is not a regular file\n"));
  // A name without a path is the catalogue's, even where the working folder has such a file.
  CHECK(std::filesystem::exists("/proc/self/comm"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path("/proc/self");
  CHECK(based_on("comm").starts_with("error: there is no model 'comm'\n"));
  std::filesystem::current_path(before);
}

TEST_CASE("a text that only mentions the key is no variant") {
  CHECK(!may_be_variant({"x", "model: x  # not based_on: anything\n"}));
  CHECK(may_be_variant({"x", "model: x\nbased_on: y\n"}));
}

}  // namespace stowage
