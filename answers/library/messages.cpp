#include "answers/library/messages.hpp"

#include <span>

namespace stowage {

namespace {

Message::Kind kind_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return Message::Kind::error;
    case Severity::warning:
      return Message::Kind::warning;
    case Severity::note:
      break;
  }
  return Message::Kind::note;
}

}  // namespace

std::string shown(const Messages& messages) {
  std::string text;
  for (const Message& message : messages) text += message.shown;
  return text;
}

Messages messages_of(const Diagnostics& diagnostics) {
  Messages messages;
  for (const Diagnostic& one : diagnostics) {
    const SourceSpan& span = one.span;
    messages.push_back({.kind = kind_of(one.severity),
                        .text = one.message,
                        .file = span.source ? span.source->name : "",
                        .line = span.line,
                        .column = span.column,
                        .hint = one.hint,
                        .shown = render(std::span(&one, 1))});
  }
  return messages;
}

tl::unexpected<Messages> refused(const Diagnostics& diagnostics) {
  return tl::unexpected(messages_of(diagnostics));
}

}  // namespace stowage
