#include "cli/output/signals.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

namespace stowage {

namespace {

// Read by the signal handler: a plain buffer, and a flag set last.
std::array<char, 4096> removed_path{};
std::atomic<bool> has_removed_path{false};
std::atomic<bool> waits_for_search{false};
std::atomic<bool> was_interrupted{false};

extern "C" void on_signal(int signal) {
  if (signal == SIGINT && waits_for_search && !was_interrupted.exchange(true)) return;
  if (has_removed_path) unlink(removed_path.data());
  _exit(128 + signal);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void remove_on_signal(const std::string& path) {
  has_removed_path = false;
  if (path.empty() || path.size() >= removed_path.size()) return;
  std::strcpy(removed_path.data(), path.c_str());
  has_removed_path = true;
}

StoppableSearch::StoppableSearch() { waits_for_search = false; }
StoppableSearch::~StoppableSearch() { waits_for_search = false; }
void StoppableSearch::has_result() const { waits_for_search = true; }

bool interrupted() { return was_interrupted; }

}  // namespace stowage
