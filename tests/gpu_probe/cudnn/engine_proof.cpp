#include "tests/gpu_probe/cudnn/engine_proof.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "gpu_probe/cudnn/attention_graph.hpp"
#include "gpu_probe/cudnn/described_device.hpp"
#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/operation_graph.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage::test {
namespace {

const CudnnLibrary& cudnn_here() {
  const auto library = cudnn_library();
  if (!library) throw std::runtime_error(library.error().front().message);
  return **library;
}

std::unique_ptr<CudnnSession> session_for(const std::string& device) {
  auto session = open_cudnn_session(device);
  if (!session) throw std::runtime_error(session.error().front().message);
  return *std::move(session);
}

std::string format_of(DataType type, bool tf32) {
  if (type == DataType::float32) return tf32 ? "tf32" : "fp32";
  return type == DataType::float16 ? "fp16" : "bf16";
}

EngineProof::Kind kind_of(const ConvolutionQuery& query) {
  using Direction = ConvolutionCall::Direction;
  return {format_of(query.type, query.settings.tf32),
          query.direction == Direction::forward         ? "forward"
          : query.direction == Direction::backward_data ? "data gradient"
                                                        : "filter gradient"};
}
EngineProof::Kind kind_of(const AttentionQuery& query) {
  return {format_of(query.type, true), query.direction == AttentionQuery::Direction::forward
                                           ? "attention forward"
                                           : "attention backward"};
}

std::string text_of(const ConvolutionQuery& query) {
  return fmt::format("x {} w {} y {} stride {} padding {} dilation {} groups {}", query.x, query.w,
                     query.y, query.stride, query.padding, query.dilation, query.groups);
}
std::string text_of(const AttentionQuery& query) {
  return fmt::format("q {} k {} v {}", query.query.shape, query.key.shape, query.value.shape);
}

}  // namespace

EngineProof::EngineProof(const Card& card)
    : library_(cudnn_here()),
      session_(session_for(card.cudnn_device_json)),
      device_(described_device(library_, card.cudnn_device_json)) {}

EngineProof::~EngineProof() = default;

template <typename Query, typename MakeAgain>
void EngineProof::prove(const Query& query, const Result<WorkspaceAnswer>& answer,
                        MakeAgain make_again) {
  const Kind kind = kind_of(query);
  ProofCounts& counts = counts_[kind];
  ++counts.questions;
  const auto refuse = [&](std::string why) {
    refusals_.push_back(
        {fmt::format("{} {} {}", kind.first, kind.second, text_of(query)), std::move(why)});
  };
  if (!answer || answer->engines.empty()) {
    ++counts.unanswered;
    return refuse(answer ? "cuDNN has no engine for it" : answer.error().front().message);
  }
  for (const Engine& engine : kept_engines(answer->engines)) {
    ++counts.engines;
    const auto name = parse_engine_name(engine.name);
    if (!name) {
      refuse(fmt::format("'{}' does not read back", engine.name));
      continue;
    }
    try {
      const Bytes workspace = make_again(*name);
      if (workspace == engine.workspace) {
        ++counts.made_again;
      } else {
        refuse(fmt::format("'{}' wants {} made again, {} when it was asked for", engine.name,
                           format_bytes(workspace), format_bytes(engine.workspace)));
      }
    } catch (const LibraryFailure& failure) {
      refuse(fmt::format("'{}': {}", engine.name, failure.what()));
    }
  }
}

void EngineProof::ask(const ConvolutionQuery& query) {
  prove(query, session_->engines(query), [&](const EngineName& name) {
    const CudnnDescriptor graph = convolution_graph(library_, query);
    return Bytes(workspace_of(engine_plan(library_, {.described = &device_}, graph, name)));
  });
}

void EngineProof::ask(const AttentionQuery& query) {
  prove(query, session_->attention_engines(query), [&](const EngineName& name) {
    const CudnnDescriptor graph = attention_graph(library_, query);
    const CudnnDescriptor configuration =
        engine_configuration(library_, {.described = &device_}, graph, name);
    return Bytes(configuration.get_integer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
  });
}

}  // namespace stowage::test
