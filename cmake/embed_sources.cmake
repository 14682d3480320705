# Writes a C++ source that holds files as texts.
#
#   cmake -DROOT=FOLDER -DFILES=A;B -DOUTPUT=FILE -P embed_sources.cmake
#
# A file is called by its path below ROOT. In pieces, since compilers bound a literal's length.
cmake_minimum_required(VERSION 3.25)

set(text "// Written by cmake/embed_sources.cmake.\n#include \"gpu_probe/kernels/device_source.hpp\"\n\n")
string(APPEND text "namespace stowage::kernels {\n\nstd::span<const DeviceHeader> device_headers() {\n")
string(APPEND text "  static const DeviceHeader headers[] = {\n")
foreach(file IN LISTS FILES)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  file(READ ${file} content)
  string(APPEND text "{\"${name}\", ")
  string(LENGTH "${content}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${content}" ${at} 8000 piece)
    string(APPEND text "R\"stowage(${piece})stowage\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND text "},\n")
endforeach()
string(APPEND text "  };\n  return headers;\n}\n\n}  // namespace stowage::kernels\n")
file(WRITE ${OUTPUT} "${text}")
