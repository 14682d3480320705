// All of the library: say which model and card, ask, read the answer.
//
//   #include <stowage/stowage.hpp>
//   const auto answer = stowage::ask(stowage::FitQuestion{
//       .step = {.model = {.source = "vgg16"}}, .gpu = {.name = "rtx3090"}, .batch = 64});
//   if (!answer) std::cerr << stowage::shown(answer.error());
//   else std::cout << answer->fits << ' ' << answer->peak.device_bytes << '\n';
//
// Sizes are bytes, times seconds. What a user can cause comes back as messages; an exception is a
// mistake of ours, or memory that ran out. One question at a time: not for concurrent use.
#pragma once

#include <stowage/facts.hpp>
#include <stowage/fit.hpp>
#include <stowage/fit_table.hpp>
#include <stowage/installation.hpp>
#include <stowage/largest_batch.hpp>
#include <stowage/memory.hpp>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <stowage/placement.hpp>
#include <stowage/serving_fit.hpp>
