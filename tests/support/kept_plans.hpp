// The plans and steps of tests/plans, one folder a format version.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/source_directory.hpp"

namespace stowage::test {

struct KeptFile {
  std::string path;  ///< within tests/plans: "plan-2/mlp.yaml"
  std::string text;
};

/// The files whose names end so, by path.
inline std::vector<KeptFile> kept_files(std::string_view ending) {
  const std::filesystem::path folder(testing::source_path("/tests/plans"));
  std::vector<KeptFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !entry.path().string().ends_with(ending)) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files.push_back({entry.path().lexically_relative(folder).string(),
                     {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()}});
  }
  std::sort(files.begin(), files.end(),
            [](const KeptFile& a, const KeptFile& b) { return a.path < b.path; });
  return files;
}
inline std::vector<KeptFile> kept_plans() { return kept_files(".yaml"); }
inline std::vector<KeptFile> kept_steps() { return kept_files(".json"); }

}  // namespace stowage::test
