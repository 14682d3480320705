// Runs the real program, as a user does, and keeps what it wrote where.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage::testing {

struct Outcome {
  int exit_code = -1;  ///< 128 + the signal where one ended it
  std::string out;     ///< stdout
  std::string err;     ///< stderr
};

struct Circumstances {
  std::string input;                               ///< stdin
  std::map<std::string, std::string> environment;  ///< added to ours; "" unsets
  /// The largest file that it may write and its address space, as ulimit -f and -v set them.
  std::optional<Bytes> largest_file = {}, address_space = {};
  /// stdout and stderr are a terminal of so many columns; both come back as `out`.
  std::optional<int> terminal_columns = {};
  std::string out_file = {}, err_file = {};  ///< instead of what comes back as `out` and `err`
  std::string folder = {};                   ///< where it runs; empty: where we are
};

/// `words` without the program's name.
[[nodiscard]] Outcome stowage_program(const std::vector<std::string>& words,
                                      const Circumstances& circumstances = {});

/// A line typed into a shell in which `stowage` is the program.
[[nodiscard]] Outcome typed(const std::string& line, const Circumstances& circumstances = {});

/// stderr without the warning, and its hint, of a machine that has no cuDNN.
[[nodiscard]] std::string said_beside_cudnn(const Outcome& outcome);

/// The program while it runs, with a terminal as its stderr.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& words);
  ~RunningProgram();  ///< ends it
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  /// Until the program has shown `text` on its terminal; false: it ended without.
  [[nodiscard]] bool shows(const std::string& text);
  void send(int signal) const;
  [[nodiscard]] Outcome wait();

 private:
  bool read_more();
  TemporaryFolder folder_;
  pid_t child_ = -1;
  int terminal_ = -1;
  std::string shown_;
  bool waited_for_ = false;
};

}  // namespace stowage::testing
