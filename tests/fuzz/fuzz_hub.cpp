// The hub's folder: the input's first line is a name on the hub, and every other line a file of the
// cache:
//
//   d PATH          a folder
//   f PATH TEXT     a file
//   p PATH          a pipe that nobody writes to
//   l PATH TARGET   a link, made when all else is there
//
// The config.json that is found lies in the cache, and its text is read as a configuration.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/local_cache.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_entries = 40, longest_path = 200;

struct Entry {
  char kind = 0;
  fs::path path;
  std::string content;
};

/// Below the cache, and of names that a file system takes. A link that was made before leads
/// nowhere else then: links are made last, each beside real folders alone.
bool is_inside(const fs::path& path) {
  if (path.empty() || path.is_absolute() || path.native().size() > longest_path) return false;
  for (const fs::path& part : path) {
    if (part == ".." || part == "." || part.empty()) return false;
    if (part.native().find('\0') != std::string::npos) return false;
  }
  return true;
}

std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty() && entries.size() < most_entries) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() < 3 || line[1] != ' ') continue;
    const std::string_view rest = line.substr(2);
    const std::size_t space = std::min(rest.find(' '), rest.size());
    Entry entry{line[0], fs::path(rest.substr(0, space)),
                std::string(rest.substr(std::min(rest.size(), space + 1)))};
    if (is_inside(entry.path)) entries.push_back(std::move(entry));
  }
  return entries;
}

/// Whether every folder of the path is a real one, or is not there.
bool has_real_folders(const fs::path& root, const fs::path& path) {
  fs::path at = root;
  for (const fs::path& part : path.parent_path()) {
    at /= part;
    std::error_code code;
    if (fs::is_symlink(fs::symlink_status(at, code))) return false;
  }
  return true;
}

void put(const fs::path& root, const Entry& entry) {
  if (!has_real_folders(root, entry.path)) return;
  const fs::path path = root / entry.path;
  std::error_code code;
  fs::create_directories(path.parent_path(), code);
  if (fs::symlink_status(path, code).type() != fs::file_type::not_found) return;
  switch (entry.kind) {
    case 'd':
      fs::create_directory(path, code);
      break;
    case 'f':
      std::ofstream(path) << entry.content;
      break;
    case 'p':
      (void)mkfifo(path.c_str(), 0600);
      break;
    case 'l':
      if (entry.content.find('\0') == std::string::npos) {
        fs::create_symlink(entry.content, path, code);
      }
      break;
    default:
      break;
  }
}

const fs::path& cache_folder() {
  static const fs::path folder =
      fs::temp_directory_path() / ("stowage-fuzz-hub-" + std::to_string(getpid()));
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::string name(text.substr(0, text.find('\n')));
  const fs::path& cache = cache_folder();
  std::error_code code;
  fs::remove_all(cache, code);
  fs::create_directory(cache, code);
  const std::vector<Entry> entries =
      entries_of(text.substr(std::min(text.size(), name.size() + 1)));
  for (const bool links : {false, true}) {
    for (const Entry& entry : entries) {
      if ((entry.kind == 'l') == links) put(cache, entry);
    }
  }
  const auto config = cached_config(name, cache);
  if (!config) {
    fuzz::require_shown(config.error());
  } else {
    // A name leads nowhere but below the cache, and to no pipe.
    fuzz::require(config->native().starts_with(cache.native() + "/models--"));
    fuzz::require(fs::is_regular_file(*config, code));
    const auto imported = import_model(read_file_head(config->string()), {});
    if (!imported) fuzz::require_shown(imported.error());
  }
  fs::remove_all(cache, code);
  return 0;
}
