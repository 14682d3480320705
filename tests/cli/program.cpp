#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace stowage::testing {

namespace {

void limit(__rlimit_resource resource, const std::optional<Bytes>& most) {
  if (!most) return;
  const auto count = static_cast<rlim_t>(most->count());
  const rlimit both{.rlim_cur = count, .rlim_max = count};
  setrlimit(resource, &both);
}

void set_environment(const Circumstances& circumstances) {
  unsetenv("STOWAGE_CONFIGS");
  unsetenv("COLUMNS");
  // cuDNN's answers are kept from run to run in a folder of the build, which is not the user's.
  // None is kept beyond a change of what asks for it; tests about the cache name a folder of their
  // own.
  unsetenv("STOWAGE_NO_CACHE");
  setenv("XDG_CACHE_HOME", STOWAGE_TEST_CACHE, 1);
  for (const auto& [name, value] : circumstances.environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  _exit(127);
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// All that comes out of a terminal until its other side is closed.
std::string terminal_text(int terminal) {
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t size = read(terminal, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;  // EIO: the last one that had it open is gone
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  close(terminal);
  std::erase(text, '\r');
  return text;
}

Outcome run(const std::vector<std::string>& words, const Circumstances& circumstances) {
  const TemporaryFolder folder;
  const std::string input = folder.file("in", circumstances.input);
  const bool own_out = circumstances.out_file.empty();
  const bool own_err = circumstances.err_file.empty();
  const std::string output = own_out ? folder.file("out", "") : circumstances.out_file;
  const std::string errors = own_err ? folder.file("err", "") : circumstances.err_file;
  int terminal = -1, inner = -1;
  if (circumstances.terminal_columns) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(*circumstances.terminal_columns);
    size.ws_row = 50;
    if (openpty(&terminal, &inner, nullptr, nullptr, &size) != 0) {
      throw std::runtime_error("no terminal");
    }
  }
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    dup2(open(input.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(inner >= 0 ? inner : open(output.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(inner >= 0 ? inner : open(errors.c_str(), O_WRONLY), STDERR_FILENO);
    if (inner >= 0) {
      close(inner);
      close(terminal);
    }
    if (!circumstances.folder.empty() && chdir(circumstances.folder.c_str()) != 0) _exit(127);
    set_environment(circumstances);
    limit(RLIMIT_FSIZE, circumstances.largest_file);
    limit(RLIMIT_AS, circumstances.address_space);
    become(words);
  }
  Outcome outcome;
  if (inner >= 0) {
    close(inner);
    outcome.out = terminal_text(terminal);
  }
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = exit_code_of(status);
  if (inner < 0 && own_out) outcome.out = file_text(output);
  if (inner < 0 && own_err) outcome.err = file_text(errors);
  return outcome;
}

std::vector<std::string> with_program(const std::vector<std::string>& words) {
  std::vector<std::string> all{STOWAGE_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

Outcome stowage_program(const std::vector<std::string>& words, const Circumstances& circumstances) {
  return run(with_program(words), circumstances);
}

Outcome typed(const std::string& line, const Circumstances& circumstances) {
  Circumstances with_path = circumstances;
  const std::string folder = std::filesystem::path(STOWAGE_PROGRAM).parent_path().string();
  with_path.environment["PATH"] = folder + ":/usr/bin:/bin";
  return run({"/bin/bash", "-c", line}, with_path);
}

std::string said_beside_cudnn(const Outcome& outcome) {
  std::string text = outcome.err;
  const std::size_t warning = text.find("warning: workspaces are by a rule");
  if (warning == std::string::npos) return text;
  const std::size_t hint = text.find('\n', warning);
  return text.erase(warning, text.find('\n', hint + 1) + 1 - warning);
}

RunningProgram::RunningProgram(const std::vector<std::string>& words) {
  const std::string output = folder_.file("out", "");
  int inner = -1;
  winsize size{};
  size.ws_col = 200;
  if (openpty(&terminal_, &inner, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("no terminal");
  }
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("cannot fork");
  if (child_ > 0) {
    close(inner);
    return;
  }
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(output.c_str(), O_WRONLY), STDOUT_FILENO);
  dup2(inner, STDERR_FILENO);
  close(inner);
  close(terminal_);
  set_environment({});
  become(with_program(words));
}

RunningProgram::~RunningProgram() {
  if (!waited_for_) {
    send(SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  close(terminal_);
}

bool RunningProgram::read_more() {
  std::array<char, 4096> chunk{};
  const ssize_t size = read(terminal_, chunk.data(), chunk.size());
  if (size > 0) shown_.append(chunk.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

bool RunningProgram::shows(const std::string& text) {
  while (shown_.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

void RunningProgram::send(int signal) const { kill(child_, signal); }

Outcome RunningProgram::wait() {
  while (read_more()) {
  }
  int status = 0;
  waitpid(child_, &status, 0);
  waited_for_ = true;
  std::erase(shown_, '\r');
  return {exit_code_of(status), file_text(folder_.path("out")), shown_};
}

}  // namespace stowage::testing
