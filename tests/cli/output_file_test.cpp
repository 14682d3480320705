// Files that appear whole or not at all.
#include "cli/output/output_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/program.hpp"

namespace stowage {

namespace fs = std::filesystem;
using testing::file_text;
using testing::Outcome;
using testing::RunningProgram;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

// Long enough for a signal to meet it at work.
std::vector<std::string> long_plan(const std::string& output) {
  return {"plan", "gpt2-medium", "--batch", "8",        "--budget",
          "6GiB", "-o",          output,    "--effort", "1024"};
}

}  // namespace

TEST_CASE("a link is written through, wherever it leads") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("there"));
  (void)folder.file("there/plan.yaml", "old");
  fs::create_symlink("there/plan.yaml", folder.path("link"));
  fs::create_symlink("link", folder.path("link-to-link"));
  auto file = OutputFile::open(folder.path("link-to-link"));
  REQUIRE(file);
  CHECK(file_text(folder.path("there/plan.yaml")) == "old");
  REQUIRE(file->commit("new"));
  CHECK(file_text(folder.path("there/plan.yaml")) == "new");
  CHECK(fs::is_symlink(folder.path("link")));
  CHECK(fs::is_symlink(folder.path("link-to-link")));
  CHECK(folder.names() == std::vector<std::string>{"link", "link-to-link", "there"});

  fs::create_symlink("there/fresh.yaml", folder.path("dangling"));
  auto fresh = OutputFile::open(folder.path("dangling"));
  REQUIRE(fresh);
  REQUIRE(fresh->commit("new"));
  CHECK(file_text(folder.path("there/fresh.yaml")) == "new");

  fs::create_symlink("loop", folder.path("loop"));
  CHECK_FALSE(OutputFile::open(folder.path("loop")));
}

TEST_CASE("what was there keeps its mode; what is new has the usual one") {
  const TemporaryFolder folder;
  const std::string path = folder.file("secret.yaml", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  auto file = OutputFile::open(path);
  REQUIRE(file);
  REQUIRE(file->commit("new"));
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  const mode_t mask = umask(0);
  umask(mask);
  auto fresh = OutputFile::open(folder.path("fresh.yaml"));
  REQUIRE(fresh);
  REQUIRE(fresh->commit("new"));
  CHECK(static_cast<mode_t>(fs::status(folder.path("fresh.yaml")).permissions()) == (0666 & ~mask));
}

TEST_CASE("what is not committed leaves nothing, not even when the program is killed") {
  const TemporaryFolder folder;
  { const auto dropped = OutputFile::open(folder.path("plan.yaml")); }
  CHECK(folder.names().empty());
  RunningProgram program(long_plan(folder.path("plan.yaml")));
  REQUIRE(program.shows("Ctrl-C"));
  program.send(SIGKILL);
  CHECK(program.wait().exit_code == 128 + SIGKILL);
  CHECK(folder.names().empty());
}

TEST_CASE("SIGTERM ends the program and leaves nothing") {
  const TemporaryFolder folder;
  RunningProgram program(long_plan(folder.path("plan.yaml")));
  REQUIRE(program.shows("Ctrl-C"));
  program.send(SIGTERM);
  CHECK(program.wait().exit_code == 143);
  CHECK(folder.names().empty());
}

TEST_CASE("a name that contradicts what is written is refused, with the line to type") {
  const TemporaryFolder folder;
  const Outcome picture = stowage_program({"export", "mnist-cnn", "-o", "v.svg"});
  CHECK(picture.exit_code == 2);
  CHECK(picture.err ==
        "<command line>: error: dot is a text for graphviz, and 'v.svg' is named as a picture\n"
        "  stowage export mnist-cnn | dot -Tsvg -o v.svg\n");
  const Outcome page =
      stowage_program({"export", "mnist-cnn", "--set", "a=b c", "-o", "my v.HTML"});
  CHECK(page.err ==
        "<command line>: error: what is written is dot, and 'my v.HTML' is named as something "
        "else\n"
        "  stowage export mnist-cnn --set 'a=b c' -o 'my v.dot'\n");
  CHECK(stowage_program({"export", "mnist-cnn", "-o", folder.path("v.gv")}).exit_code == 0);
  CHECK(folder.names() == std::vector<std::string>{"v.gv"});
}

}  // namespace stowage
