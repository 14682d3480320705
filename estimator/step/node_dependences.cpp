#include "estimator/step/node_dependences.hpp"

#include <algorithm>

namespace stowage {

std::vector<std::vector<std::int32_t>> node_dependences(const StepGraph& step) {
  struct Access {
    std::int32_t writer = -1;
    std::vector<std::int32_t> readers;  // since then
  };
  std::vector<Access> last(step.storages.size());
  std::vector<std::vector<std::int32_t>> before(step.nodes.size());
  std::int32_t foreign = -1;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    const KernelNode& node = step.nodes[i];
    std::vector<std::int32_t>& mine = before[i];
    for (const TensorView& read : node.reads) {
      Access& access = last[read.storage.index()];
      if (access.writer >= 0) mine.push_back(access.writer);
      access.readers.push_back(at);
    }
    for (const TensorView& written : node.writes) {
      Access& access = last[written.storage.index()];
      if (access.writer >= 0) mine.push_back(access.writer);
      mine.insert(mine.end(), access.readers.begin(), access.readers.end());
    }
    for (const TensorView& written : node.writes) last[written.storage.index()] = {at, {}};
    if (node.kernel == Kernel::foreign) {
      if (foreign >= 0) mine.push_back(foreign);
      foreign = at;
    }
    std::ranges::sort(mine);
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    std::erase(mine, at);  // what it reads and writes itself
  }
  return before;
}

}  // namespace stowage
