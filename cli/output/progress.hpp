// Progress: a line on stderr that says what takes so long, and for how long it has.
//
//   searching for plans, 12 s (Ctrl-C takes the best so far)
//
// Only on a terminal, only after half a second, and gone without a trace at the end.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stowage {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From now on none is shown. Before the first one only.
  static void silence();

  /// From now on it is doing this.
  void now(std::string what);

 private:
  void show();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  bool over_ = false;
  std::thread thread_;  ///< not joinable: stderr is no terminal
};

}  // namespace stowage
