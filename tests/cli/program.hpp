// Runs the real program, as a user does, and keeps what it wrote where.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stowage::testing {

struct Outcome {
  int exit_code = -1;  ///< 128 + the signal where one ended it
  std::string out;     ///< stdout
  std::string err;     ///< stderr
};

struct Circumstances {
  std::string input;                               ///< stdin
  std::map<std::string, std::string> environment;  ///< added to ours; "" unsets
};

/// `words` without the program's name.
[[nodiscard]] Outcome stowage_program(const std::vector<std::string>& words,
                                      const Circumstances& circumstances = {});

/// A folder of this test's own, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// The path of a new file that holds `text`.
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::vector<std::string> names() const;  ///< sorted

 private:
  std::string folder_;
};

[[nodiscard]] std::string file_text(const std::string& path);

}  // namespace stowage::testing
