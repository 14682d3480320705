#include "cli/output/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "cli/output/terminal.hpp"

namespace stowage {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto first_after = std::chrono::milliseconds(500);
constexpr auto then_every = std::chrono::milliseconds(250);

// Signals are for the thread that works.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

bool& is_silent() {
  static bool silent = false;
  return silent;
}

}  // namespace

void Progress::silence() { is_silent() = true; }

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (is_silent() || !is_terminal(STDERR_FILENO)) return;
  thread_ = std::thread([this] {
    block_signals();
    show();
  });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::now(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::show() {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (auto until = begin + first_after; !wake_.wait_until(lock, until, [&] { return over_; });
       until = Clock::now() + then_every) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    std::string line = seconds > 0 ? fmt::format("{}, {} s", what_, seconds) : what_;
    const std::size_t width = output_width(STDERR_FILENO).value_or(80);
    if (line.size() >= width) line.resize(width - 1);
    write_quietly(stderr, "\r\x1b[K" + line);
    shown = true;
  }
  if (shown) write_quietly(stderr, "\r\x1b[K");
}

}  // namespace stowage
