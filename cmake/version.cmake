# STOWAGE_VERSION: the tag that is checked out (v1.2.3 is 1.2.3), or the nearest tag with how many
# commits came after it and the last of them (1.2.3-4-gabcdef0); the project's own where there is no
# tag and no git, as in an unpacked archive.
set(STOWAGE_VERSION ${PROJECT_VERSION})
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --tags --match "v[0-9]*"
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE tag ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(tag MATCHES "^v([0-9].*)$")
    set(STOWAGE_VERSION ${CMAKE_MATCH_1})
  endif()
  # Of a tagged commit itself.
  if(tag MATCHES "^v[0-9.]+$" AND NOT STOWAGE_VERSION VERSION_EQUAL PROJECT_VERSION)
    message(FATAL_ERROR "the commit is tagged ${tag}, and python/stowage/version.py says "
                        "${PROJECT_VERSION}: change one of them")
  endif()
  # Git appends to this file whenever another commit is checked out; CMake then asks again.
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE log ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(log)
    cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(EXISTS ${log})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
