// Operator traces in the format of the DTR prototype (github.com/uwsampl/dtr-prototype): what
// PyTorch was asked for during a training step, one JSON object a line.
//
//   CONSTANT name            a storage made outside the traced operators; MEMORY gives its bytes
//   CALL args -> results     an operator; per result MEMORY (bytes), then ALIAS: the index of the
//                            argument whose storage it shares, or -1 for a storage of its own
//   MUTATE args              in place: nothing is allocated
//   COPY src -> dst          another name for the same storage
//   RELEASE name             a name goes; with its last name the storage does
//
// Header only: it needs the JSON library, which only its two users link.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "estimator/memory/lifetimes.hpp"

namespace stowage {

struct OperatorTrace {
  std::vector<StorageUse> uses;  ///< one a storage; every line of the trace is a step
  std::int32_t steps = 0;
};

class OperatorTraceReader {
 public:
  void line(const std::string& text) {
    const auto event = nlohmann::json::parse(text);
    const std::string kind = event.at("INSTRUCTION");
    if (kind == "CONSTANT") {
      own(event.at("NAME"));
    } else if (kind == "CALL") {
      arguments_ = event.at("ARGS").get<std::vector<std::string>>();
    } else if (kind == "MEMORY") {
      memory_ = Bytes(std::stoll(event.at("MEMORY").get<std::string>()));
      // Of a CONSTANT; that of a CALL's result comes before its name is known.
      const auto known = storage_.find(event.at("NAME"));
      if (known != storage_.end()) trace_.uses[known->second].bytes = memory_;
    } else if (kind == "ALIAS") {
      const int argument = std::stoi(event.at("ALIAS").get<std::string>());
      if (argument < 0) {
        own(event.at("NAME"));
        trace_.uses.back().bytes = memory_;
      } else {
        share(event.at("NAME"), arguments_.at(static_cast<std::size_t>(argument)));
      }
    } else if (kind == "COPY") {
      share(event.at("DST"), event.at("SRC"));
    } else if (kind == "RELEASE") {
      release(event.at("NAME"));
    } else if (kind != "MUTATE" && kind != "ANNOTATE") {
      throw std::runtime_error("unknown instruction " + kind);
    }
    ++trace_.steps;
  }

  /// What still has a name stays to the end.
  [[nodiscard]] OperatorTrace finish() {
    for (const auto& [name, storage] : storage_) hold(storage, trace_.steps - 1);
    return std::move(trace_);
  }

 private:
  void own(const std::string& name) {
    storage_.emplace(name, trace_.uses.size());
    trace_.uses.push_back({.touches = {trace_.steps}});
    names_.push_back(1);
  }

  void share(const std::string& name, const std::string& of) {
    const std::size_t storage = storage_.at(of);
    storage_.emplace(name, storage);
    ++names_[storage];
  }

  void release(const std::string& name) {
    const std::size_t storage = storage_.at(name);
    storage_.erase(name);
    if (--names_[storage] == 0) hold(storage, trace_.steps - 1);  // gone from this step on
  }

  void hold(std::size_t storage, std::int32_t last) {
    auto& touches = trace_.uses[storage].touches;
    if (last > touches.back()) touches.push_back(last);
  }

  OperatorTrace trace_;
  std::map<std::string, std::size_t> storage_;  // by name
  std::vector<int> names_;                      // by storage: how many names it has
  std::vector<std::string> arguments_;
  Bytes memory_;
};

/// Throws (JSON's errors, std::out_of_range, std::runtime_error) on what is not such a trace.
[[nodiscard]] inline OperatorTrace read_operator_trace(std::istream& input) {
  OperatorTraceReader reader;
  for (std::string line; std::getline(input, line);) reader.line(line);
  return reader.finish();
}

}  // namespace stowage
