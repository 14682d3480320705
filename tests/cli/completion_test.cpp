// Completion and the manual page, by the shells themselves.
#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/options/command.hpp"
#include "cli/options/completion_script.hpp"
#include "cli/options/option.hpp"
#include "tests/cli/program.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

/// What a shell's command line prints; the shell finds `stowage` on its PATH.
std::string printed(const TemporaryFolder& folder, const std::string& line) {
  const std::string out = folder.path("out");
  const std::string folder_of_program =
      std::string(STOWAGE_PROGRAM).substr(0, std::string(STOWAGE_PROGRAM).rfind('/'));
  const std::string whole = "cd " + folder.path() + " && PATH=" + folder_of_program + ":$PATH " +
                            line + " >" + out + " 2>&1 </dev/null";
  CHECK(std::system(whole.c_str()) == 0);
  return testing::file_text(out);
}

bool has_shell(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null").c_str()) == 0;
}

/// What bash completes, where the cursor is behind the last word.
std::string bash(const TemporaryFolder& folder, const std::string& words) {
  REQUIRE_FALSE(folder.file("c.sh", bash_completion()).empty());
  return printed(folder, "bash -c 'source ./c.sh; COMP_WORDS=(" + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stowage; printf "
                             "\"%s\\n\" \"${COMPREPLY[@]}\"'");
}

}  // namespace

TEST_CASE("bash completes commands, options, words, cards, models and files") {
  const TemporaryFolder folder;
  REQUIRE_FALSE(folder.file("resnet_own.yaml", "model: a\n").empty());
  CHECK(bash(folder, "stowage ch") == "check\n");
  CHECK(bash(folder, "stowage re") == "record\n");
  CHECK(bash(folder, "stowage check x --prec") == "--precision\n");
  CHECK(bash(folder, "stowage check x --precision amp") == "amp-fp16\namp-bf16\n");
  CHECK(bash(folder, "stowage check x --dtype amp") == "amp-fp16\namp-bf16\n");
  CHECK(bash(folder, "stowage check x --gpu geforce-rtx-309") ==
        "geforce-rtx-3090\ngeforce-rtx-3090-ti\n");
  const std::string models = bash(folder, "stowage check resnet");
  CHECK(models.find("resnet50\n") != std::string::npos);
  CHECK(models.find("resnet_own.yaml\n") != std::string::npos);
  CHECK(bash(folder, "stowage gpus --nosuch") == "\n");
}

TEST_CASE("fish completes the same, and zsh takes its script") {
  const TemporaryFolder folder;
  if (has_shell("fish")) {
    REQUIRE_FALSE(folder.file("c.fish", fish_completion()).empty());
    const auto fish = [&](const std::string& line) {
      return printed(folder, "fish --no-config -c 'source c.fish; complete -C \"" + line + "\"'");
    };
    CHECK(fish("stowage ch").find("check\tdoes it fit? what takes the room?\n") == 0);
    CHECK(fish("stowage check --prec").find("--precision\t") == 0);
    CHECK(fish("stowage check --precision amp").find("amp-bf16") != std::string::npos);
    CHECK(fish("stowage check --gpu geforce-rtx-3090-t").find("geforce-rtx-3090-ti") == 0);
  } else {
    MESSAGE("fish is not here: its script was not read");
  }
  if (has_shell("zsh")) {
    REQUIRE_FALSE(folder.file("_stowage", zsh_completion()).empty());
    CHECK(printed(folder, "zsh -f -n _stowage").empty());
    CHECK(printed(folder,
                  "zsh -f -c 'autoload -Uz compinit; compinit -D; source ./_stowage; "
                  "print -r -- ${_comps[stowage]}'") == "_stowage\n");
  } else {
    MESSAGE("zsh is not here: its script was not read");
  }
}

TEST_CASE("the cards' words are cards") {
  const Outcome words = stowage_program({"completion", "gpus"});
  REQUIRE(words.exit_code == 0);
  std::string text = words.out;
  std::size_t cards = 0;
  while (!text.empty()) {
    const std::string word = text.substr(0, text.find('\n'));
    text.erase(0, word.size() + 1);
    CHECK(word.find(' ') == std::string::npos);
    if (word == "here" || word == "all") continue;
    if (cards++ % 40 != 0) continue;  // some of them: each is a run of the program
    CHECK(stowage_program({"check", "mnist-cnn", "--gpu", word}).exit_code == 0);
  }
  CHECK(cards > 200);
}

TEST_CASE("the manual page has every command and option, and none is hidden as a control line") {
  const std::string page = stowage_program({"completion", "man"}).out;
  for (const CommandSpec& command : command_table()) {
    CAPTURE(command.name);
    CHECK(page.find("\\fBstowage " + std::string(command.name) + "\\fR") != std::string::npos);
  }
  for (std::size_t at = page.find("\n."); at != std::string::npos; at = page.find("\n.", at + 1)) {
    const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    const bool known = line.starts_with(".SH ") || line == ".TP" || line == ".nf" ||
                       line == ".fi" || line.starts_with(".B ") || line.starts_with(".TH ");
    CHECK_MESSAGE(known, line);
  }
  const TemporaryFolder folder;
  if (has_shell("groff")) {
    REQUIRE_FALSE(folder.file("s.1", page).empty());
    CHECK(printed(folder, "groff -man -Tutf8 -ww -z s.1").empty());
  }
}

TEST_CASE("completion for what is no shell") {
  const Outcome outcome = stowage_program({"completion", "bsh"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err ==
        "<command line>: error: 'bsh' is no shell that completion is made for\n"
        "  did you mean 'bash'?\n");
}

TEST_CASE("help has the usual options first, and all of them with --all") {
  const std::string usual = stowage_program({"help", "plan"}).out;
  const std::string all = stowage_program({"help", "plan", "--all"}).out;
  CHECK(std::count(usual.begin(), usual.end(), '\n') < 70);
  CHECK(usual.find(" more: stowage help plan --all\n") != std::string::npos);
  CHECK(usual.find("\nThe usual options\n") != std::string::npos);
  for (const std::string_view name : find_command("plan")->options) {
    CAPTURE(name);
    CHECK(all.find("--" + std::string(name)) != std::string::npos);
  }
  CHECK(stowage_program({"plan", "--help"}).out == usual);
  CHECK(stowage_program({"plan", "--help", "--all"}).out == all);
  CHECK(stowage_program({"help", "gpus"}).out.find("more: ") == std::string::npos);
}

}  // namespace stowage
