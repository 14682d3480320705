// Comparisons, masks and what they select.
#include "gpu_probe/kernels/bodies/selection.hpp"

#include <algorithm>
#include <array>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"
#include "gpu_probe/kernels/rows/words.hpp"

namespace stowage::kernels {
namespace {

using body::Comparison;
using body::Connective;

template <class Word, std::size_t size>
Word named(const KernelCall& call,
           const std::array<std::pair<std::string_view, Word>, size>& words) {
  const std::string name = text(call, "operation", "");
  const auto found = std::ranges::find(words, name, [](const auto& word) { return word.first; });
  require(found != words.end(), "attribute 'operation' is '{}'", name);
  return found->second;
}

constexpr std::array<std::pair<std::string_view, Comparison>, 6> comparisons{
    {{"eq", Comparison::eq},
     {"ne", Comparison::ne},
     {"lt", Comparison::lt},
     {"le", Comparison::le},
     {"gt", Comparison::gt},
     {"ge", Comparison::ge}}};
constexpr std::array<std::pair<std::string_view, Connective>, 4> connectives{
    {{"and", Connective::conjunction},
     {"or", Connective::disjunction},
     {"xor", Connective::exclusive},
     {"not", Connective::negation}}};

body::Byte* mask_elements(const TensorArgument& mask) {
  require(mask.type == DataType::boolean || mask.type == DataType::uint8,
          "a mask is {} where boolean or uint8 is needed", to_string(mask.type));
  return words<body::Byte>(mask);
}

}  // namespace

Launches compare(const KernelCall& call, Arithmetic) {
  const auto &a = call.reads[0], &y = call.writes[0];
  const bool two = call.reads.size() > 1;
  const auto& b = call.reads.back();
  const Comparison comparison = named(call, comparisons);
  const double value = two ? 0 : real(call, "value");
  const body::Strided of_a = repeated(a.shape, y.shape), of_b = repeated(b.shape, y.shape);
  if (is_floating_point(a.type)) {
    return {each_index(body::CompareFloats{any_floats(a), two ? any_floats(b) : no_floats,
                                           mask_elements(y), of_a, of_b, value, comparison},
                       count(y.shape))};
  }
  return {each_index(body::CompareIntegers{any_integers(a), two ? any_integers(b) : no_integers,
                                           mask_elements(y), of_a, of_b, value, comparison},
                     count(y.shape))};
}

Launches logical(const KernelCall& call, Arithmetic) {
  const auto &a = call.reads[0], &b = call.reads.back(), &y = call.writes[0];
  const Connective connective = named(call, connectives);
  const bool two = call.reads.size() > 1;
  require(two == (connective != Connective::negation), "operation '{}' of {} masks",
          text(call, "operation", ""), call.reads.size());
  return {
      each_index(body::Logical{mask_elements(a), two ? mask_elements(b) : nullptr, mask_elements(y),
                               repeated(a.shape, y.shape), repeated(b.shape, y.shape), connective},
                 count(y.shape))};
}

Launches select(const KernelCall& call, Arithmetic) {
  const auto &condition = call.reads[0], &a = call.reads[1], &b = call.reads[2];
  const auto& y = call.writes[0];
  require_same_type(a, y);
  require_same_type(b, y);
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::Select<Word>{mask_elements(condition), words<Word>(a), words<Word>(b),
                                         words<Word>(y), repeated(condition.shape, y.shape),
                                         repeated(a.shape, y.shape), repeated(b.shape, y.shape)},
                      count(y.shape));
  })};
}

Launches triangle(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  require_same_type(x, y);
  const std::size_t rank = x.shape.size();
  require(rank >= 2, "{} is no matrix", shape_text(x.shape));
  return {in_words(y.type, [&]<class Word>() {
    return each_index(
        body::Triangle<Word>{words<Word>(x), words<Word>(y), x.shape[rank - 2], x.shape[rank - 1],
                             integer(call, "diagonal", 0), boolean(call, "upper", false)},
        count(y.shape));
  })};
}

}  // namespace stowage::kernels
