# Every #include keeps to the arrows between rooms that docs/architecture.md has in its tables.
#
#   cmake -DSOURCE=FOLDER -P rooms_test.cmake     FOLDER: the project, or one that looks like it
#
# A row is "| `library/room` | what it has | `room` `room/file` |". A room may use the rooms of its last
# column, of one with a file that file alone, itself, and every room of the libraries below its own. No text outside cli/options names an
# option of the command line, but for the commands' table of themselves and run.cpp's --help.
cmake_minimum_required(VERSION 3.25)

set(libraries estimator planner gpu_probe answers cli)  # from the bottom up
set(mistakes "")

# rooms: in the order of the tables; may_use_<room>: what its row names.
file(STRINGS ${SOURCE}/docs/architecture.md lines REGEX "^\\| `[a-z_]+/[a-z_]+` \\|")
set(rooms "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^\\| `(([a-z_]+)/[a-z_]+)` \\|.*\\|([^|]*)\\|$" row "${line}")
  set(room ${CMAKE_MATCH_1})
  set(library ${CMAKE_MATCH_2})
  string(REGEX MATCHALL "[a-z_/]+" names "${CMAKE_MATCH_3}")
  foreach(name IN LISTS names)
    string(REGEX REPLACE "/.*" "" used "${name}")
    list(FIND rooms ${library}/${used} place)
    if(place EQUAL -1)
      list(APPEND mistakes "docs/architecture.md: '${room}' uses '${library}/${used}', which has no row above it")
    endif()
    list(APPEND may_use_${room} ${library}/${name})
  endforeach()
  list(APPEND rooms ${room})
  if(NOT IS_DIRECTORY ${SOURCE}/${room})
    list(APPEND mistakes "docs/architecture.md: there is no folder '${room}'")
  endif()
endforeach()

set(below "")
foreach(library IN LISTS libraries)
  file(GLOB_RECURSE sources RELATIVE ${SOURCE} ${SOURCE}/${library}/*.hpp ${SOURCE}/${library}/*.cpp)
  foreach(source IN LISTS sources)
    if(source STREQUAL cli/main.cpp)
      continue()  # stands above all rooms
    endif()
    string(REGEX MATCH "^[a-z_]+/[a-z_]+" room ${source})
    if(NOT room IN_LIST rooms)
      list(APPEND mistakes "${source}: its folder '${room}' has no row in docs/architecture.md")
      continue()
    endif()
    file(STRINGS ${SOURCE}/${source} includes REGEX "^#include \"")
    foreach(include IN LISTS includes)
      string(REGEX MATCH "\"(([a-z_]+)/[a-z_]+)(/[a-z_0-9]+)?" used "${include}")
      set(used ${CMAKE_MATCH_1})
      set(used_library ${CMAKE_MATCH_2})
      set(used_file ${used}${CMAKE_MATCH_3})
      if(used STREQUAL room OR used_library IN_LIST below OR used IN_LIST may_use_${room} OR
         used_file IN_LIST may_use_${room})
        continue()
      endif()
      list(APPEND mistakes "${source}: '${room}' may not use '${used}' (docs/architecture.md)")
    endforeach()
    file(STRINGS ${SOURCE}/${source} options REGEX "^[^/]*\".*--[a-z]")
    if(options AND NOT room STREQUAL cli/options AND NOT source MATCHES "^cli/commands/(run|command_table)\\.cpp$")
      list(APPEND mistakes "${source}: a text names an option, only cli/options knows those (answers/question/question_error.hpp)")
    endif()
  endforeach()
  list(APPEND below ${library})
endforeach()

if(mistakes)
  list(REMOVE_DUPLICATES mistakes)
  list(JOIN mistakes "\n" text)
  message(NOTICE "${text}")  # FATAL_ERROR would fold the lines
  message(FATAL_ERROR "not within the rooms of docs/architecture.md")
endif()
