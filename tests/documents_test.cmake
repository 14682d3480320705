# What CONTRIBUTING.md and the README send a reader to is there: paths in backquotes (from the root, *
# stands for any name) and links.
#   cmake -DSOURCE=... -P documents_test.cmake
cmake_minimum_required(VERSION 3.25)
set(rooms "estimator|planner|gpu_probe|cli|configs|tests|bench|docs|examples|cmake")
foreach(document CONTRIBUTING.md README.md)
  file(READ ${SOURCE}/${document} text)
  string(REPLACE "](" "`" text "${text}")  # brackets would join the list's elements
  string(REGEX MATCHALL "`(${rooms})/[A-Za-z0-9_./*-]+" named "${text}")
  if(NOT named)
    message(SEND_ERROR "${document} names no path: what finds them is broken")
  endif()
  foreach(path ${named})
    string(REGEX REPLACE "`|/$" "" path "${path}")
    file(GLOB found ${SOURCE}/${path})
    if(NOT found)
      message(SEND_ERROR "${document} names ${path}, which is not there")
    endif()
  endforeach()
endforeach()
