#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "estimator/base/read_source.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

Result<std::string> write_readable_plan(const Plan& plan) {
  const auto source = std::make_shared<const SourceText>(SourceText{"the plan", write_plan(plan)});
  const Bytes size(static_cast<std::int64_t>(source->text.size()));
  if (const Bytes most = largest_file(FileKind::plan); size > most) {
    return failure(fmt::format("the plan takes {}, and a plan's file has at most {}",
                               format_bytes(size), format_bytes(most)));
  }
  const auto read = read_plan(source);
  if (!read) {
    const Diagnostic& first = read.error().front();
    throw std::logic_error(fmt::format("a plan was made that cannot be read: line {}: {}",
                                       first.span.line, first.message));
  }
  if (write_plan(*read) != source->text) {
    throw std::logic_error("a plan was made that is another one when it is read");
  }
  return source->text;
}

}  // namespace stowage
