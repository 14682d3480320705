# The whole from nothing in less processor time, at the price of more at each later change. The preset
# 'user' has both, and so have 'asan' and 'fuzz'; 'release' has neither, since only a source that is
# compiled by itself shows a missing #include.
#
# STOWAGE_FAST_BUILD: standard headers and fmt's are compiled once, ahead; what only reads options and
#   prints is optimised less, and the host's kernels more.
# STOWAGE_BATCHES: the sources of a folder are compiled together, so that no two of them may give one
#   name to two things, not even in their anonymous namespaces.

if(STOWAGE_FAST_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler collects its garbage later: a sixth less time for a fifth more memory.
  add_compile_options("SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=700000")
endif()

set(stowage_common_headers
    <algorithm> <array> <cassert> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric>
    <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility> <variant>
    <vector> <fmt/format.h> <fmt/ranges.h> <tl/expected.hpp>)

# stowage_fast_build(TARGET HEADERS...): precompiled headers, these beside the common ones.
# stowage_fast_build(TARGET REUSE_FROM OTHER): those of another target.
function(stowage_fast_build target)
  if(NOT STOWAGE_FAST_BUILD)
    return()
  endif()
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${stowage_common_headers} ${ARGN})
  endif()
endfunction()

# stowage_optimize_less(TARGET): for code whose compilation takes longer than it ever runs.
function(stowage_optimize_less target)
  if(STOWAGE_FAST_BUILD AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# stowage_optimize_fully(TARGET): for code that runs far longer than its compilation takes.
function(stowage_optimize_fully target)
  if(STOWAGE_FAST_BUILD AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O2)
  endif()
endfunction()

# stowage_batch_sources(TARGET [EXCEPT REGEX]): the sources of a folder together, in alphabetical
# order, in batches of at most 90 kB; those whose path matches REGEX one by one.
function(stowage_batch_sources target)
  if(NOT STOWAGE_BATCHES)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCEPT" "")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/")
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX ${arg_EXCEPT})
  endif()
  list(SORT sources)
  set(batch 0)
  set(batch_folder "")
  set(batch_bytes 0)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    file(SIZE ${source} bytes)
    math(EXPR batch_bytes "${batch_bytes} + ${bytes}")
    if(NOT folder STREQUAL batch_folder OR batch_bytes GREATER 90000)
      math(EXPR batch "${batch} + 1")
      set(batch_folder ${folder})
      set(batch_bytes ${bytes})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP batch_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
