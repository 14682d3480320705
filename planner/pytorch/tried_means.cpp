#include "planner/pytorch/tried_means.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

namespace stowage {

std::string in_words(const TriedMeans& tried) {
  if (!tried.trains) {
    return tried.streams ? "the batch in parts and its blocks' parameters streamed"
                         : "the batch in parts, without blocks to be streamed";
  }
  const auto with_modules = [&](std::string_view means, std::string_view modules) {
    return fmt::format("{}{}", means, tried.has_modules ? modules : "");
  };
  constexpr std::string_view none_or_all = " with none or all of the modules run again";
  std::vector<std::string> ways{
      with_modules("saved tensors on the host", " with none to all of the modules run again")};
  if (tried.early_updates) ways.emplace_back("the same with updates as gradients come");
  if (tried.parts) ways.push_back(with_modules("micro-batches", none_or_all));
  if (tried.host_updates) {
    ways.push_back(
        with_modules("updates on the CPU with saved tensors on the host", " or modules run again"));
  }
  if (tried.expandable) {
    ways.emplace_back("all of this with expandable segments of the allocator");
  }
  if (tried.streams) ways.push_back(with_modules("frozen parameters streamed", none_or_all));
  return fmt::format("{}", fmt::join(ways, "; "));
}

}  // namespace stowage
