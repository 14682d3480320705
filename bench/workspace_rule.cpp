// How far the workspace rule is from cuDNN's own first choices, on the convolutions that it was
// fitted on and on others (docs/workspaces.md): fp32 card by card, then the other types, layouts
// and settings over all cards. Needs cuDNN; not a timing.
//
//   build/bench/workspace_rule [CARD...]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "estimator/card/card.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cudnn/session.hpp"

namespace {

using namespace stowage;
using Direction = ConvolutionCall::Direction;

struct Shape {
  std::int64_t n = 1, c = 1, k = 1, size = 1, r = 3, s = 3, stride = 1, groups = 1, dilation = 1;
};

/// `same` padding; one query a direction, each once.
class Queries {
 public:
  void add(const Shape& shape) {
    const auto [n, c, k, size, r, s, stride, groups, dilation] = shape;
    const std::int64_t pad_h = dilation * (r - 1) / 2, pad_w = dilation * (s - 1) / 2;
    const auto extent = [&](std::int64_t pad, std::int64_t window) {
      return (size + 2 * pad - dilation * (window - 1) - 1) / stride + 1;
    };
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_filter}) {
      const ConvolutionQuery query{.direction = direction,
                                   .x = {n, c, size, size},
                                   .w = {k, c / groups, r, s},
                                   .y = {n, k, extent(pad_h, r), extent(pad_w, s)},
                                   .stride = {stride, stride},
                                   .padding = {pad_h, pad_w},
                                   .dilation = {dilation, dilation},
                                   .groups = groups};
      if (seen_.insert(query).second) all_.push_back(query);
    }
  }
  void square(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size,
              std::int64_t window, std::int64_t stride = 1, std::int64_t groups = 1,
              std::int64_t dilation = 1) {
    add({n, c, k, size, window, window, stride, groups, dilation});
  }
  [[nodiscard]] const std::vector<ConvolutionQuery>& all() const { return all_; }

 private:
  std::set<ConvolutionQuery> seen_;
  std::vector<ConvolutionQuery> all_;
};

void add_residual_stages(Queries& queries, std::int64_t n) {
  std::int64_t wide = 64, basic = 64, size = 56;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage, stride = stage == 0 ? 1 : 2;
    const std::int64_t out = size / stride;
    queries.square(n, wide, width, size, 1);
    queries.square(n, width, width, size, 3, stride);
    queries.square(n, wide, 4 * width, size, 1, stride);
    queries.square(n, width, 4 * width, out, 1);
    queries.square(n, 4 * width, width, out, 1);
    queries.square(n, width, width, out, 3);
    queries.square(n, basic, width, size, 3, stride);
    if (stage > 0) queries.square(n, basic, width, size, 1, 2);
    wide = 4 * width;
    basic = width;
    size = out;
  }
}

/// VGG-16, ResNet-18 and ResNet-50, and grouped, dilated, oblong and thin ones, at four batch
/// sizes.
Queries fitted() {
  Queries queries;
  for (const std::int64_t n : {1, 8, 32, 64}) {
    const std::int64_t widths[] = {64, 64, 128, 128, 256, 256, 512, 512, 512, 512};
    std::int64_t c = 3;
    for (std::size_t i = 0; i < 10; ++i) {
      queries.square(n, c, widths[i], 224 >> (i / 2), 3);
      c = widths[i];
    }
    queries.square(n, 3, 64, 224, 7, 2);
    add_residual_stages(queries, n);
    for (const std::int64_t width : {32, 96, 192}) {
      for (const std::int64_t size : {112, 28}) queries.square(n, width, width, size, 3, 1, width);
    }
    queries.square(n, 144, 144, 56, 3, 2, 144);
    queries.square(n, 128, 128, 56, 3, 1, 32);
    queries.square(n, 512, 512, 14, 3, 1, 32);
    queries.square(n, 96, 256, 27, 5, 1, 2);
    queries.square(n, 256, 256, 28, 3, 1, 1, 2);
    queries.square(n, 512, 512, 14, 3, 1, 1, 4);
    queries.add({.n = n, .c = 192, .k = 192, .size = 17, .r = 1, .s = 7});
    queries.square(n, 64, 192, 27, 5);
    queries.square(n, 48, 64, 35, 5);
    queries.square(n, 1, 32, 28, 3);
    queries.square(n, 32, 64, 28, 3);
    queries.square(n, 16, 16, 16, 3);
    queries.square(n, 3, 32, 224, 3, 2);
    queries.square(n, 32, 96, 112, 1);
    queries.square(n, 96, 24, 56, 1);
    queries.square(n, 16, 256, 16, 3);
  }
  return queries;
}

/// A hundred at random, from other channels, sizes and batches.
Queries judged() {
  Queries queries;
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  for (int i = 0; i < 100; ++i) {
    const std::int64_t n = pick({2, 16, 32, 48}), c = pick({1, 16, 32, 48, 96, 160, 320, 384});
    const std::int64_t k = pick({16, 32, 48, 96, 192, 320, 384});
    const std::int64_t size = pick({7, 16, 28, 32, 35, 64, 96, 128});
    const std::int64_t window = pick({1, 3, 3, 5, 7}), stride = pick({1, 1, 1, 2});
    switch (random() % 8) {
      case 0:
        queries.square(n, k, k, size, 3, stride, k);
        break;
      case 1:
        queries.square(n, 64, 128, size, 3, stride, 4);
        break;
      case 2:
        queries.square(n, c, k, size, 3, 1, 1, 2);
        break;
      case 3:
        queries.add({.n = n, .c = c, .k = k, .size = size, .r = 1, .s = 7});
        break;
      default:
        queries.square(n, c, k, size, window, stride);
        break;
    }
  }
  return queries;
}

/// A type, a layout and a setting in which the same convolutions are asked about.
struct Kind {
  std::string name;
  DataType type = DataType::float32;
  TensorLayout layout = TensorLayout::contiguous;
  bool tf32 = true;

  [[nodiscard]] ConvolutionQuery of(ConvolutionQuery query) const {
    query.type = type;
    query.layout = layout;
    query.settings.tf32 = tf32;
    return query;
  }
};

struct Errors {
  std::vector<double> relative;  ///< (rule - cuDNN) / (x + w + y)
  double rule = 0, cudnn = 0;

  void add(const ConvolutionQuery& query, Bytes by_rule, Bytes by_cudnn) {
    const auto r = static_cast<double>(by_rule.count());
    const auto c = static_cast<double>(by_cudnn.count());
    const Bytes operands = bytes_of(query.x, query.type) + bytes_of(query.w, query.type) +
                           bytes_of(query.y, query.type);
    relative.push_back((r - c) / static_cast<double>(operands.count()));
    rule += r;
    cudnn += c;
  }
  void print(const std::string& name) const {
    std::vector<double> size;
    double sum = 0, low = 0;
    for (const double e : relative) {
      size.push_back(std::abs(e));
      sum += std::abs(e);
      low += e < -0.02;
    }
    std::ranges::sort(size);
    const auto count = static_cast<double>(size.size());
    fmt::print("  {:<36}{:>6}{:>8.1f}%{:>8.1f}%{:>8.0f}%{:>8}\n", name, size.size(),
               100 * size[size.size() / 2], 100 * sum / count, 100 * low / count,
               cudnn > 0 ? fmt::format("{:.2f}", rule / cudnn) : "-");
  }
};

using ErrorsByDirection = std::map<Direction, Errors>;
constexpr const char* directions[] = {"forward", "data gradient", "filter gradient"};

void print_header(const std::string& title) {
  fmt::print("{}\n  {:<36}{:>6}{:>9}{:>9}{:>9}{:>8}\n", title, "", "count", "median", "mean", "low",
             "total");
}

void print_rows(const std::string& name, const ErrorsByDirection& errors) {
  for (const auto& [direction, error] : errors) {
    error.print(fmt::format("{:<20}{}", name, directions[static_cast<int>(direction)]));
  }
}

Result<ErrorsByDirection> judge(const Kind& kind, const Queries& queries, const std::string& name,
                                ErrorsByDirection errors = {}) {
  const auto found = find_card(name, STOWAGE_SOURCE_DIR "/configs/gpus");
  auto session = found.and_then(
      [](const FoundCard& f) { return open_cudnn_session(f.card.cudnn_device_json); });
  if (!session) return tl::unexpected(session.error());
  for (const ConvolutionQuery& convolution : queries.all()) {
    const ConvolutionQuery query = kind.of(convolution);
    const auto answer = (*session)->engines(query);
    if (!answer || answer->engines.empty()) continue;
    errors[query.direction].add(query, rule_workspace(query, found->card.compute_capability),
                                answer->engines.front().workspace);
  }
  return errors;
}

Result<void> judge_cards(const std::string& title, const Queries& queries,
                         const std::vector<std::string>& cards) {
  print_header(title);
  for (const std::string& card : cards) {
    auto errors = judge({}, queries, card);
    if (!errors) return tl::unexpected(errors.error());
    print_rows(card, *errors);
  }
  return {};
}

Result<void> judge_kinds(const std::string& title, const Queries& queries,
                         const std::vector<std::string>& cards) {
  constexpr auto channels_last = TensorLayout::channels_last;
  const Kind kinds[] = {{.name = "fp16", .type = DataType::float16},
                        {"fp16 channels-last", DataType::float16, channels_last},
                        {.name = "fp32 channels-last", .layout = channels_last},
                        {.name = "fp32, no TF32", .tf32 = false},
                        {.name = "fp64", .type = DataType::float64}};
  print_header(title);
  for (const Kind& kind : kinds) {
    ErrorsByDirection errors;
    for (const std::string& card : cards) {
      auto more = judge(kind, queries, card, std::move(errors));
      if (!more) return tl::unexpected(more.error());
      errors = *std::move(more);
    }
    print_rows(kind.name, errors);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> cards(argv + 1, argv + argc);
  if (cards.empty()) {
    cards = {"t4", "a100-sxm4-40gb", "rtx-3090", "rtx-4090", "h200", "b200", "rtx-5090"};
  }
  auto done = judge_cards("fp32, fitted on", fitted(), cards);
  if (done) done = judge_cards("fp32, judged on", judged(), cards);
  if (done) done = judge_kinds("other types and layouts, judged on, all cards", judged(), cards);
  if (done) return 0;
  fmt::print(stderr, "{}", render(done.error()));
  return 1;
}
