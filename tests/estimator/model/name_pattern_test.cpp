// Regular expressions over the paths of modules.
#include "estimator/model/name_pattern.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

bool fits_prefix(std::string_view pattern, std::string_view name) {
  const auto read = NamePattern::parse(pattern);
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : render(read.error())));
  return read->matches(name);
}

bool fits_modules(std::string_view pattern, std::string_view name) {
  return NamePattern::parse(pattern).value().matches_modules(name);
}

}  // namespace

TEST_CASE("a pattern means what Python's re.match means") {
  CHECK(fits_prefix(".*lm_head", "model.lm_head"));
  CHECK(fits_prefix("lm", "lm_head"));
  CHECK_FALSE(fits_prefix("head", "lm_head"));
  CHECK(fits_prefix(R"(model\.layers\.\d+\.mlp\.gate$)", "model.layers.12.mlp.gate"));
  CHECK_FALSE(fits_prefix(R"(model\.layers\.\d+\.mlp\.gate$)", "model.layers.12.mlp.gate_proj"));
  CHECK(fits_prefix(R"(.*\.(q|k)_proj$)", "layers.0.k_proj"));
  CHECK_FALSE(fits_prefix(R"(.*\.(?:q|k)_proj$)", "layers.0.v_proj"));
  CHECK(fits_prefix("layers.[0-3].x", "layers.2.x"));
  CHECK_FALSE(fits_prefix("layers.[^0-3].x", "layers.2.x"));
  CHECK(fits_prefix("^a?b+c*?$", "bb"));
  CHECK_FALSE(fits_prefix("^a?b+$", "bc"));
  CHECK(fits_prefix("", "anything"));
}

TEST_CASE("a module's name ends at a dot or at the end") {
  CHECK(fits_modules("layer.1", "layer.1.attn"));
  CHECK_FALSE(fits_modules("layer.1", "layer.11.attn"));
  CHECK(fits_modules("layer.*", "layer.11.attn"));
  CHECK_FALSE(fits_modules("mlp.gate", "mlp.gate_proj"));
  CHECK(fits_modules("mlp.gate", "mlp.gate"));
}

TEST_CASE("what no pattern is, is refused from there on") {
  const auto refusal = [](std::string_view text) {
    return render(NamePattern::parse(text).error());
  };
  CHECK(refusal("a(b") == "error: 'a(b' is not read as a pattern, from '(b' on\n");
  CHECK(refusal("ab)") == "error: 'ab)' is not read as a pattern, from ')' on\n");
  CHECK(refusal("a{2}") == "error: 'a{2}' is not read as a pattern, from '{2}' on\n");
  CHECK(refusal("[ab") == "error: '[ab' is not read as a pattern, from '[ab' on\n");
  CHECK(refusal(R"(a\b)") == "error: 'a\\b' is not read as a pattern, from '\\b' on\n");
  CHECK(refusal("(?=a)") == "error: '(?=a)' is not read as a pattern, from '(?=a)' on\n");
  CHECK(refusal("*a") == "error: '*a' is not read as a pattern, from '*a' on\n");
  CHECK(refusal(std::string(600, 'a')) == "error: a pattern is longer than 512 bytes\n");
  CHECK_FALSE(NamePattern::parse(std::string(400, '(')).has_value());
}

TEST_CASE("patterns that backtrack for ever elsewhere end here") {
  CHECK_FALSE(fits_prefix("(a*)*b$", std::string(2000, 'a')));
  CHECK_FALSE(fits_prefix("(a|a)*(a|a)*(a|a)*c$", std::string(2000, 'a')));
}

}  // namespace stowage
