// DescriptionText: builds the text of a description (docs/model-description.md) section by section.
//
// Importers write layers as lines of YAML in flow form, "linear: {name: q_proj, features: 64}";
// this class knows the sections, their order and the indentation. It checks nothing: load_model
// reads the text like a user's.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage {

/// The lines of `layers:`, of a block or of the model.
class LayerLines {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  void add(const std::vector<std::string>& lines) {
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

class DescriptionText {
 public:
  DescriptionText(std::string name, std::string source);

  /// "layers", "32"
  void argument(std::string name, std::string value);
  void symbol(std::string name, std::string value);
  /// "tokens", "{shape: [batch, seq], dtype: int64}"
  void input(std::string name, std::string type);
  /// "linear", "{bias: false}"
  void defaults(std::string op, std::string attributes);
  /// Adds a block; `head`: its other keys, as "arguments: {causal: false}" or "output: [a, b]". The
  /// reference stays valid.
  LayerLines& block(std::string name, std::vector<std::string> head = {});
  LayerLines& layers() { return layers_; }
  /// "cross_entropy: {from: [logits, targets]}"
  void loss(std::string line) { loss_ = std::move(line); }
  void output(std::string layer) { output_ = std::move(layer); }
  /// "optimizer: adamw, learning_rate: 5e-5"
  void train(std::string settings) { train_ = std::move(settings); }
  /// Shapes use this argument in place of `batch`: the step has a fixed number of samples.
  void fix_batch(std::string argument) { fixed_batch_ = std::move(argument); }
  [[nodiscard]] bool has_loss() const { return !loss_.empty(); }

  [[nodiscard]] std::string text() const;

 private:
  struct Block {
    std::string name;
    std::vector<std::string> head;
    LayerLines layers;
  };
  using Entries = std::vector<std::pair<std::string, std::string>>;

  std::string name_, source_, loss_, output_, train_, fixed_batch_;
  Entries arguments_, symbols_, inputs_, defaults_;
  std::deque<Block> blocks_;
  LayerLines layers_;
};

}  // namespace stowage
