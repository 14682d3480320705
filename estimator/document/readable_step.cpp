#include "estimator/document/readable_step.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "estimator/base/read_source.hpp"

namespace stowage {

Result<std::string> write_readable_step(const StepDocument& document) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"the step", write_step(document)});
  const Bytes size(static_cast<std::int64_t>(source->text.size()));
  if (const Bytes most = largest_file(FileKind::step); size > most) {
    return failure(fmt::format("the step takes {}, and a step file has at most {}",
                               format_bytes(size), format_bytes(most)),
                   "check, batch and plan take the model itself");
  }
  const auto read = read_step(source);
  if (!read) {
    const Diagnostic& first = read.error().front();
    throw std::logic_error(fmt::format("a step was made that cannot be read: line {}: {}",
                                       first.span.line, first.message));
  }
  if (write_step(*read) != source->text) {
    throw std::logic_error("a step was made that is another one when it is read");
  }
  return source->text;
}

}  // namespace stowage
