# A tag of the commit has to be the version that python/stowage/version.py states.
#
#   cmake -DSOURCE=FOLDER -DFOLDER=FOLDER -P version_test.cmake
cmake_minimum_required(VERSION 3.25)
find_package(Git REQUIRED)

# version_of(TAG STATED): what cmake/version.cmake says in a repository with one commit of that tag.
function(version_of tag stated)
  file(REMOVE_RECURSE ${FOLDER})
  file(MAKE_DIRECTORY ${FOLDER})
  set(author -c user.name=a -c user.email=a@b)
  foreach(arguments "init;-q" "${author};commit;-q;--allow-empty;-m;one" "${author};tag;${tag}")
    execute_process(COMMAND ${GIT_EXECUTABLE} ${arguments} WORKING_DIRECTORY ${FOLDER}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(WRITE ${FOLDER}/ask.cmake "
    set(PROJECT_SOURCE_DIR ${FOLDER})
    set(PROJECT_VERSION ${stated})
    include(${SOURCE}/cmake/version.cmake)
    message(NOTICE \"version \${STOWAGE_VERSION}\")\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -P ${FOLDER}/ask.cmake RESULT_VARIABLE result
                  ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  set(result ${result} PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()

function(expect tag stated wanted_result wanted)
  version_of(${tag} ${stated})
  string(FIND "${said}" "${wanted}" at)
  if(NOT result EQUAL wanted_result OR at EQUAL -1)
    message(SEND_ERROR "tag ${tag}, stated ${stated}: ${result}, ${said}")
  endif()
endfunction()

expect(v0.1.0 0.1.0 0 "version 0.1.0")
expect(v0.2.0 0.1.0 1
       "the commit is tagged v0.2.0, and python/stowage/version.py says 0.1.0: change one of them")
expect(nightly 0.1.0 0 "version 0.1.0")
