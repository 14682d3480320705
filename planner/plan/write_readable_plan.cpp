#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "planner/plan/plan_file.hpp"

namespace stowage {

std::string write_readable_plan(const Plan& plan) {
  const auto source = std::make_shared<const SourceText>(SourceText{"the plan", write_plan(plan)});
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
