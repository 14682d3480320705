#include "estimator/base/bytes.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "estimator/base/largest_memory.hpp"

namespace stowage {

TEST_CASE("sizes are read as written") {
  CHECK(parse_bytes("4096 B") == Bytes(4096));
  CHECK(parse_bytes("233MiB") == Bytes(233LL << 20));
  CHECK(parse_bytes(" 8 GiB ") == Bytes(8LL << 30));
  CHECK(parse_bytes("2GB") == Bytes(2'000'000'000));
  CHECK(parse_bytes("1.5gib") == Bytes(3LL << 29));
  CHECK(parse_bytes("0") == Bytes(0));
}

TEST_CASE("what is no size is refused with the reason") {
  const auto refusal = [](std::string_view text) {
    const auto result = parse_bytes(text);
    REQUIRE(!result.has_value());
    return render(result.error());
  };
  CHECK(refusal("") == "error: '' is not a size\n  write 8GiB, 233MiB or 2GB\n");
  CHECK(refusal("many") == "error: 'many' is not a size\n  write 8GiB, 233MiB or 2GB\n");
  CHECK(refusal("-5MB") == "error: '-5MB' is negative; a size of memory is not\n");
  CHECK(refusal("8GiBy") == "error: '8GiBy' has an unknown unit 'GiBy'\n  did you mean 'GiB'?\n");
  CHECK(refusal("9e30B") ==
        "error: '9e30B' is more than 32.0 PiB\n  no machine has that much memory\n");
  CHECK(refusal("32769TiB").starts_with("error: '32769TiB' is more than 32.0 PiB\n"));
  CHECK(parse_bytes("32768TiB") == largest_memory);
  CHECK(refusal("500") == "error: 500 of what? A size has a unit\n  did you mean 500MiB?\n");
  CHECK(refusal("8") == "error: 8 of what? A size has a unit\n  did you mean 8GiB?\n");
  CHECK(refusal("2144010240") ==
        "error: 2144010240 of what? A size has a unit\n  did you mean 2144010240B?\n");
  CHECK(refusal("nan") == "error: 'nan' is not a size\n  write 8GiB, 233MiB or 2GB\n");
}

TEST_CASE("sizes print in IEC units") {
  CHECK(format_bytes(Bytes(0)) == "0 B");
  CHECK(format_bytes(Bytes(1023)) == "1023 B");
  CHECK(format_bytes(Bytes(1024)) == "1.0 KiB");
  CHECK(format_bytes(Bytes((1 << 20) - 1)) == "1.0 MiB");
  CHECK(format_bytes(24_GiB) == "24.0 GiB");
}

TEST_CASE("two amounts that differ never print alike") {
  using Pair = std::pair<std::string, std::string>;
  CHECK(format_apart(2_GiB, 3_GiB) == Pair{"2.0 GiB", "3.0 GiB"});
  CHECK(format_apart(1783_MiB, 1764_MiB) == Pair{"1783.0 MiB", "1764.0 MiB"});
  CHECK(format_apart(Bytes((1LL << 30) + 4096), 1_GiB) == Pair{"1048580.0 KiB", "1048576.0 KiB"});
  CHECK(format_apart(Bytes((1LL << 30) + 1), 1_GiB) == Pair{"1073741825 B", "1073741824 B"});
  CHECK(format_apart(1_GiB, 1_GiB) == Pair{"1.0 GiB", "1.0 GiB"});
}

TEST_CASE("arithmetic past 64 bits throws instead of wrapping") {
  const Bytes huge(std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(huge + Bytes(1), ArithmeticOverflow);
  CHECK_THROWS_AS(huge * 2, ArithmeticOverflow);
  CHECK_THROWS_AS((void)round_up(huge, Bytes(512)), ArithmeticOverflow);
  CHECK(round_up(Bytes(513), Bytes(512)) == Bytes(1024));
  CHECK(round_up(Bytes(0), Bytes(512)) == Bytes(0));
}

}  // namespace stowage
