# An installed tree works where it was installed and where it was moved, with no build tree's help;
# it holds nothing of the tests; a program finds the libraries in it (examples/peak).
#   cmake -DBUILD=... -DSOURCE=... -DCOMPILER=... -DFLAGS=... -DTYPE=... -P install_test.cmake
set(place ${BUILD}/install_test)
file(REMOVE_RECURSE ${place})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${place}/first ${place}/moved)

foreach(arguments "models" "gpus")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=STOWAGE_CONFIGS ${place}/moved/bin/stowage
                          ${arguments}
                  WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE errors
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "moved stowage ${arguments}: exit code ${status}\n${output}${errors}")
  endif()
  if(NOT errors STREQUAL "")
    message(FATAL_ERROR "moved stowage ${arguments} wrote to stderr:\n${errors}")
  endif()
endforeach()

# The host kernels are a module of their own: a plan must run from the moved tree too.
execute_process(COMMAND ${place}/moved/bin/stowage plan mlp --batch 2 --budget 64MiB --validate
                        --format json
                WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE errors
                RESULT_VARIABLE status)
string(JSON host_run ERROR_VARIABLE broken GET "${output}" plans 0 validation host)
if(NOT status EQUAL 0 OR NOT host_run STREQUAL "passed")
  message(FATAL_ERROR "moved stowage plan --validate: exit code ${status}\n${output}${errors}")
endif()

file(READ ${place}/moved/bin/stowage baked HEX)
string(HEX "${BUILD}/configs" path)
string(FIND "${baked}" "${path}" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "the installed program has the build tree's configs compiled in")
endif()

foreach(file README.md LICENSE CHANGELOG.md CONTRIBUTING.md docs/commands.md docs/plan-file.md)
  if(NOT EXISTS ${place}/moved/share/doc/stowage/${file})
    message(FATAL_ERROR "share/doc/stowage/${file} is not installed")
  endif()
endforeach()
foreach(file pyproject.toml stowage/__main__.py stowage/pretend/elf_slots.py stowage/py.typed
             stowage/export/operators.json)
  if(NOT EXISTS ${place}/moved/share/stowage/python/${file})
    message(FATAL_ERROR "share/stowage/python/${file} is not installed")
  endif()
endforeach()
file(GLOB_RECURSE of_tests RELATIVE ${place}/moved ${place}/moved/*fake* ${place}/moved/*test*
                                                   ${place}/moved/*doctest*)
if(of_tests)
  message(FATAL_ERROR "installed, and only tests use it: ${of_tests}")
endif()

# A program of somebody else's, built against the moved tree alone.
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/peak -B ${place}/peak
                        -DCMAKE_PREFIX_PATH=${place}/moved -DCMAKE_CXX_COMPILER=${COMPILER}
                        -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=${TYPE}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${place}/peak
                OUTPUT_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "examples/peak does not build against the installed tree:\n${output}")
endif()
execute_process(COMMAND ${place}/peak/peak ${place}/moved/share/stowage/configs/models/mlp.yaml 64
                OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
execute_process(COMMAND ${place}/moved/bin/stowage check mlp --batch 64 --runtime stowage
                        --optimizer sgd --gpu-memory 1GiB --format json
                OUTPUT_VARIABLE report COMMAND_ERROR_IS_FATAL ANY)
string(JSON peak GET "${report}" peak tensor_bytes)
if(NOT status EQUAL 0 OR NOT output STREQUAL "${peak} bytes\n")
  message(FATAL_ERROR "examples/peak: exit code ${status}, not '${peak} bytes': ${output}${errors}")
endif()
file(REMOVE_RECURSE ${place})
