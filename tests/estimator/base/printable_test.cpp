#include "estimator/base/printable.hpp"

#include <doctest/doctest.h>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

TEST_CASE("control characters and invalid UTF-8 are escaped, text of any language stays") {
  CHECK(printable_line("conv1") == "conv1");
  CHECK(printable_line("r\xc3\xa9seau \xe5\x8d\xb7") == "r\xc3\xa9seau \xe5\x8d\xb7");
  CHECK(printable_line("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable_line("a\nb\tc\rd\x7f") == "a\\nb\\tc\\rd\\x7f");
  CHECK(printable_text("a\nb\tc\r") == "a\nb\tc\\r");
  CHECK(printable_line("\xff\xc3(") == "\\xff\\xc3(");         // a lead byte without its rest
  CHECK(printable_line("\xc0\xaf") == "\\xc0\\xaf");           // not the shortest form
  CHECK(printable_line("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
  CHECK(printable_line("\xc2\x9b"
                       "31m") == "\\u009b31m");  // a one-character CSI
  CHECK(printable_line("a\xe2\x80\xae"
                       "b") == "a\\u202eb");          // right-to-left override
  CHECK(printable_line("\xe2\x80") == "\\xe2\\x80");  // ends within a character
}

TEST_CASE("a diagnostic shows no raw byte, and its caret stands under the mistake") {
  const auto source = std::make_shared<const SourceText>(
      SourceText{"n\x1b]0;t\x07.yaml", "  \xc3\xa9\x1b[2J: chanels\n"});
  const Diagnostic mistake{.message = "unknown key 'a\x1b[31m'",
                           .span = {.source = source, .line = 1, .column = 11, .length = 7},
                           .hint = "did you mean '\xff'?"};
  CHECK(render(std::vector{mistake}) ==
        "n\\x1b]0;t\\x07.yaml:1:11: error: unknown key 'a\\x1b[31m'\n"
        "    \xc3\xa9\\x1b[2J: chanels\n"
        "              ^~~~~~~\n"
        "  did you mean '\\xff'?\n");
}

}  // namespace stowage
