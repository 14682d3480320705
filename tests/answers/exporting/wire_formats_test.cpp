// Bytes of protobuf and of pickle, as their own writers have them.
#include <doctest/doctest.h>

#include <string>

#include "answers/exporting/perfetto_trace.hpp"
#include "answers/exporting/pickle_writer.hpp"
#include "answers/exporting/protobuf_message.hpp"

namespace stowage {

namespace {

/// "08 96 01"
std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += text.empty() ? "" : " ";
    (text += digits[byte >> 4]) += digits[byte & 15];
  }
  return text;
}

}  // namespace

// The examples of protobuf.dev/programming-guides/encoding.
TEST_CASE("a protobuf message's fields are tags with varints, texts and messages") {
  ProtobufMessage number, text, outer, negative;
  number.add(1, 150);
  CHECK(hex(number.bytes()) == "08 96 01");
  text.add(2, std::string_view("testing"));
  CHECK(hex(text.bytes()) == "12 07 74 65 73 74 69 6e 67");
  outer.add(3, number);
  CHECK(hex(outer.bytes()) == "1a 03 08 96 01");
  negative.add(1, -2);
  CHECK(hex(negative.bytes()) == "08 fe ff ff ff ff ff ff ff ff 01");
  ProtobufMessage high;
  high.add(60, 0);
  CHECK(hex(high.bytes()) == "e0 03 00");
}

TEST_CASE("a trace is one packet a track and two a slice") {
  const std::string trace = perfetto_trace(
      {.title = "m",
       .tracks = {{.name = "GPU",
                   .slices = {{"k", "forward", 0, 1e-9, {{"step", std::int64_t{0}}}}}}},
       .counters = {{.name = "b", .samples = {{0, 5_B}}}}});
  // as Perfetto's own classes read them
  CHECK(hex(trace) ==
        // the process, track 1, whose children have an order of ranks
        "0a 10 e2 03 0b 08 01 1a 05 08 01 32 01 6d 58 03 50 01 "
        // the lane, track 2, below it
        "0a 10 e2 03 0b 08 02 28 01 12 03 47 50 55 60 02 50 01 "
        // at 0 ns "k" begins, of the category "forward", with a number "step"
        "0a 22 40 00 5a 1c 48 01 58 02 ba 01 01 6b b2 01 07 66 6f 72 77 61 72 64 22 08 52 04 73 "
        "74 65 70 20 00 50 01 "
        // at 1 ns it ends
        "0a 0a 40 01 5a 04 48 02 58 02 50 01 "
        // the counter, track 3, in bytes
        "0a 12 e2 03 0d 08 03 28 01 12 01 62 60 03 42 02 18 03 50 01 "
        // at 0 ns it is 5
        "0a 0d 40 00 5a 07 48 04 58 03 f0 01 05 50 01");
}

// pickletools.dis reads them as written here.
TEST_CASE("a pickle's values follow each other, and a text is written once") {
  PickleWriter writer;
  writer.begin_dict();
  writer.put("a", std::int64_t{1});
  writer.put("b");
  writer.begin_list();
  writer.put("a");
  writer.put(std::int64_t{1} << 40);
  writer.put(std::int64_t{-1});
  writer.put_truth(true);
  writer.begin_tuple();
  writer.end_tuple();
  writer.end_list();
  writer.end_dict();
  CHECK(hex(std::move(writer).finish()) ==
        "80 02 "                             // PROTO 2
        "7d 28 "                             // EMPTY_DICT, MARK
        "58 01 00 00 00 61 72 00 00 00 00 "  // "a", kept as 0
        "4a 01 00 00 00 "                    // 1
        "58 01 00 00 00 62 72 01 00 00 00 "  // "b", kept as 1
        "5d 28 "                             // EMPTY_LIST, MARK
        "6a 00 00 00 00 "                    // what was kept as 0
        "8a 08 00 00 00 00 00 01 00 00 "     // 2^40
        "4a ff ff ff ff "                    // -1
        "88 28 74 65 75 2e");                // True, (), APPENDS, SETITEMS, STOP
}

TEST_CASE("a pickle's named value is referred to when it is put again") {
  PickleWriter writer;
  writer.begin_list();
  CHECK_FALSE(writer.put_named("one"));
  writer.begin_list();
  writer.end_list();
  writer.give_name("one");
  CHECK(writer.put_named("one"));
  writer.end_list();
  CHECK(hex(std::move(writer).finish()) ==
        "80 02 5d 28 5d 28 65 72 00 00 00 00 6a 00 00 00 00 65 2e");
}

}  // namespace stowage
