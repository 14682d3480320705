# Writes a C++ source that holds files as texts, as a function that returns a span of them.
#
#   cmake -DROOT=FOLDER -DFILES=A;B -DHEADER=H -DNAMESPACE=N -DTYPE=T -DFUNCTION=F -DOUTPUT=FILE
#         -P embed_sources.cmake
#
# HEADER declares N::T, a name and a text, and `std::span<const T> F()`. A file is called by its path
# below ROOT. In pieces, since compilers bound a literal's length.
cmake_minimum_required(VERSION 3.25)

set(text "// Written by cmake/embed_sources.cmake.\n#include \"${HEADER}\"\n\n")
string(APPEND text "namespace ${NAMESPACE} {\n\nstd::span<const ${TYPE}> ${FUNCTION}() {\n")
string(APPEND text "  static const ${TYPE} files[] = {\n")
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
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
