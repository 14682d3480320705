#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "planner/plan/certificate_table.hpp"
#include "planner/plan/scope_words.hpp"

namespace stowage {
namespace {

class CertificateWriter {
 public:
  explicit CertificateWriter(const StepGraph& step) : step_(step) {}

  std::string run(const Certificate& certificate) {
    row("certificate: |");
    row("  # kind and what docs/plan-file.md says of it");
    if (certificate.granule > Bytes(1)) row("  granule {}", certificate.granule.count());
    for (const NodeWorkspace& each : certificate.workspaces) {
      row("  workspace {} {}", each.least.count(), node(each.node));
    }
    if (certificate.cost) tree("cost", *certificate.cost);
    if (certificate.transfers) tree("transfers", *certificate.transfers);
    if (const auto* lanes = std::get_if<LaneProof>(&certificate.step)) {
      bound("lanes", lanes->scope);
      row("  weights {} {} {} {}", lanes->gpu, lanes->cpu, lanes->uploads, lanes->downloads);
      prices(lanes->prices);
    }
    if (const auto* split = std::get_if<SplitProof>(&certificate.step)) {
      bound("split", split->scope);
      row("  beside {} {} {} {}", split->downloads, split->uploads, split->cpu, node(split->node));
    }
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void row(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  [[nodiscard]] const std::string& node(std::int32_t number) const {
    return step_.nodes[static_cast<std::size_t>(number)].name;
  }

  void bound(std::string_view kind, const BoundScope& scope) {
    std::string words;
    for (const ScopeWord& each : scope_words) {
      if (scope.*each.flag) words += fmt::format(" {}", each.word);
    }
    row("  bound {}{}", kind, words);
  }

  void prices(const std::vector<MemoryPrice>& prices) {
    for (const MemoryPrice& p : prices) row("  price {} {}", p.step, p.price);
  }

  void tree(std::string_view kind, const TreeProof& proof) {
    bound(kind, proof.scope);
    for (const BranchNode& branch : proof.tree) {
      for (const RoundedLimit& rounded : branch.limits) {
        row("  round {} {} {}", rounded.step, rounded.divisor, ranges(rounded.counted));
      }
      if (const Fixing* fixing = branch.fixing()) {
        if (fixing->after < 0) {
          row("  node {}", node(fixing->subject));
        } else {
          row("  gap {} {}", fixing->after,
              step_.storages[static_cast<std::size_t>(fixing->subject)].name);
        }
        continue;
      }
      row("  leaf");
      prices(branch.leaf()->steps);
      for (const LimitPrice& p : branch.leaf()->limits) row("  limit {} {}", p.limit, p.price);
    }
  }

  static std::string ranges(const std::vector<StorageRange>& ranges) {
    if (ranges.empty()) return "-";
    std::string text;
    for (const StorageRange& range : ranges) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", range.first);
      if (range.last > range.first) text += fmt::format("-{}", range.last);
    }
    return text;
  }

  const StepGraph& step_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string write_certificate(const Certificate& certificate, const StepGraph& step) {
  return CertificateWriter(step).run(certificate);
}

}  // namespace stowage
