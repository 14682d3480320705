# Files that documents and comments mention exist.
#
#   cmake -DSOURCE=FOLDER -P documents_test.cmake     FOLDER: the project
#
#   CONTRIBUTING.md, README.md,    paths in backquotes, from the root (* stands for any name), and links
#   docs/*.md
#   docs/*.md, the comments of     names of files: from the root (docs/gpus.md), from a library's room
#   headers and sources            (step/kernel_list.hpp), or alone (kernel_list.hpp)
cmake_minimum_required(VERSION 3.25)
set(libraries estimator planner gpu_probe answers cli)
set(folders ${libraries} configs tests bench docs examples cmake python)
list(JOIN folders "|" any_folder)

file(GLOB documents RELATIVE ${SOURCE} ${SOURCE}/docs/*.md)
foreach(document CONTRIBUTING.md README.md ${documents})
  file(READ ${SOURCE}/${document} text)
  string(REPLACE "](" "`" text "${text}")  # brackets would join the list's elements
  string(REGEX MATCHALL "`(${any_folder})/[A-Za-z0-9_./*-]+" named "${text}")
  if(NOT named AND NOT document IN_LIST documents)
    message(SEND_ERROR "${document} names no path: what finds them is broken")
  endif()
  foreach(path ${named})
    string(REGEX REPLACE "`|/$" "" path "${path}")
    file(GLOB found ${SOURCE}/${path})
    if(NOT found AND NOT path MATCHES "/NAME$")  # NAME: to be chosen by the reader
      message(SEND_ERROR "${document} names ${path}, which is not there")
    endif()
  endforeach()
endforeach()

# Names of other projects' files that look like ours.
set(foreign cnmem.cpp dnnl.hpp llama.cpp docs/gguf.md python/distribute/cross_device_ops.py)

# has_name_<file>: a file of that name exists. has_path_<path>: it exists from the root or, for a header or
# source of a library, from the library. is_room_<folder>: a library has such a folder.
set(sources "")
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/${folder}/*.hpp ${SOURCE}/${folder}/*.cpp)
  list(APPEND sources ${files})
endforeach()
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME)
  set(has_name_${name} TRUE)
  set(has_path_${source} TRUE)
  string(REGEX MATCH "^([a-z_]+)/(([a-z_]+)/.*)$" parts ${source})
  if(parts AND CMAKE_MATCH_1 IN_LIST libraries)
    set(has_path_${CMAKE_MATCH_2} TRUE)
    set(is_room_${CMAKE_MATCH_3} TRUE)
  endif()
endforeach()

# Reports `mentioned` unless it exists, or is no name of a file of this project.
function(check_mention place mentioned)
  string(REGEX REPLACE "^[/.]+" "" mentioned "${mentioned}")
  if(mentioned IN_LIST foreign OR DEFINED has_path_${mentioned})
    return()
  endif()
  string(REGEX MATCH "^[a-z_]+" first "${mentioned}")
  if(mentioned MATCHES "^(${any_folder})/")
    file(GLOB found ${SOURCE}/${mentioned})
    if(found)
      return()
    endif()
  elseif(mentioned MATCHES "/")
    if(NOT DEFINED is_room_${first} OR NOT mentioned MATCHES "^[a-z0-9_/]+\\.[hc]pp$")
      return()
    endif()
  elseif(DEFINED has_name_${mentioned} OR NOT mentioned MATCHES "^[a-z0-9_]+\\.[hc]pp$")
    return()
  endif()
  message(SEND_ERROR "${place} names ${mentioned}, which is not there")
endfunction()

set(count 0)
foreach(place IN LISTS documents sources)
  file(READ ${SOURCE}/${place} text)
  if(NOT place MATCHES "\\.md$")
    string(REGEX MATCHALL "//[^\n]*" text "${text}")
  endif()
  string(REGEX MATCHALL "[A-Za-z0-9_./*-]+\\.(hpp|cpp|md|py|yaml|json|cmake|sh)" mentions "${text}")
  list(REMOVE_DUPLICATES mentions)
  foreach(mentioned IN LISTS mentions)
    math(EXPR count "${count} + 1")
    check_mention(${place} ${mentioned})
  endforeach()
endforeach()
if(count LESS 500)
  message(SEND_ERROR "only ${count} files are mentioned: what finds them is broken")
endif()
