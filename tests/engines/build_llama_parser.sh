#!/usr/bin/env bash
# Builds llama_arguments from llama.cpp's source: of a checkout, or as PyPI's llama-cpp-python has it.
#
#   tests/engines/build_llama_parser.sh SOURCE FOLDER     SOURCE: a folder with common/arg.cpp, or the
#                                                         unpacked llama_cpp_python; FOLDER: what is built
#
# 133 sources without optimisation, since nothing is computed. Prints the program's path.
set -u
source=$(cd -- "${1:?usage: build_llama_parser.sh SOURCE FOLDER}" && pwd) || exit 2
folder=${2:?usage: build_llama_parser.sh SOURCE FOLDER}
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[[ -f $source/common/arg.cpp ]] || source=$source/vendor/llama.cpp
[[ -f $source/common/arg.cpp ]] || {
  printf 'no source of llama.cpp: %s\n' "$1" >&2
  exit 2
}
mkdir -p "$folder"
{
  cmake -G Ninja -S "$source" -B "$folder" -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_C_FLAGS=-O0 \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
    -DLLAMA_BUILD_APP=OFF -DGGML_NATIVE=OFF -DLLAMA_OPENSSL=OFF -DGGML_OPENMP=OFF -DBUILD_SHARED_LIBS=OFF &&
    cmake --build "$folder" --target llama-common &&
    g++ -std=c++17 -I"$source/common" -I"$source/include" -I"$source/ggml/include" -I"$source/vendor" \
      "$here/llama_arguments.cpp" -o "$folder/llama_arguments" -Wl,--start-group \
      $(find "$folder" -name '*.a') -Wl,--end-group -lpthread -ldl
} >"$folder/build.log" 2>&1 || {
  tail -n 20 "$folder/build.log" >&2
  exit 1
}
printf '%s\n' "$folder/llama_arguments"
