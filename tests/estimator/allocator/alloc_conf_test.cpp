#include "estimator/allocator/alloc_conf.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

AllocConf read(std::string_view text) {
  const auto conf = parse_alloc_conf(text, "conf");
  REQUIRE_MESSAGE(conf.has_value(), text);
  return *conf;
}

std::string mistakes_of(std::string_view text) {
  const auto conf = parse_alloc_conf(text, "conf");
  REQUIRE_MESSAGE(!conf.has_value(), text);
  return render(conf.error());
}

}  // namespace

TEST_CASE("An empty text gives PyTorch's defaults") {
  CHECK(read("").settings == AllocatorSettings{});
  CHECK(read(" \t").settings == AllocatorSettings{});
  CHECK(read("backend:native,").settings == AllocatorSettings{});
}

TEST_CASE("Every key that changes bytes") {
  const AllocatorSettings settings =
      read(
          "max_split_size_mb:128, garbage_collection_threshold:0.8,max_non_split_rounding_mb:40,"
          "expandable_segments:True,per_process_memory_fraction:0.25,large_segment_size_mb:12,"
          "throw_on_cudamalloc_oom:True,roundup_power2_divisions:4,backend:native")
          .settings;
  CHECK(settings.max_split_size == 128_MiB);
  CHECK(settings.garbage_collection_threshold == 0.8);
  CHECK(settings.max_non_split_rounding == 40_MiB);
  CHECK(settings.expandable_segments);
  CHECK(settings.memory_fraction == 0.25);
  CHECK(settings.large_segment == 12_MiB);
  CHECK(settings.refuse_early);
  for (const std::int64_t divisions : settings.roundup_power2_divisions) CHECK(divisions == 4);
}

TEST_CASE("The lists that PyTorch's manual shows") {
  using Divisions = RoundupDivisions;
  CHECK(
      read("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").settings.roundup_power2_divisions ==
      Divisions{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8});
  // Sizes that the list leaves out between two of its own have no division.
  CHECK(read("roundup_power2_divisions : [ 64:8, 256:4 ,1024:4,>:1]")
            .settings.roundup_power2_divisions ==
        Divisions{8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 4, 1, 1, 1, 1, 1});
  CHECK(read("roundup_power2_divisions:[1:2,131072:0]").settings.roundup_power2_divisions ==
        Divisions{2});
  CHECK(read("roundup_power2_divisions:[>:2]").settings.roundup_power2_divisions ==
        Divisions{0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
}

TEST_CASE("The slack of unsplit blocks follows the large segment") {
  CHECK(read("large_segment_size_mb:32").settings.max_non_split_rounding == 32_MiB);
  CHECK(read("max_non_split_rounding_mb:40,large_segment_size_mb:32")
            .settings.max_non_split_rounding == 40_MiB);
  // The least of the others does too, wherever it stands.
  CHECK(read("max_split_size_mb:12,large_segment_size_mb:12").settings.max_split_size == 12_MiB);
}

TEST_CASE("The last of two equal keys wins; a fraction of 1 is none") {
  CHECK(read("max_split_size_mb:64,max_split_size_mb:32").settings.max_split_size == 32_MiB);
  CHECK_FALSE(read("per_process_memory_fraction:1.0").settings.memory_fraction.has_value());
  CHECK(read("expandable_segments:True,expandable_segments:False").settings == AllocatorSettings{});
}

TEST_CASE("Sizes beyond all cards are taken") {
  CHECK(read("max_split_size_mb:99999999999999999999").settings.max_split_size > 1_GiB * 1024);
}

TEST_CASE("Keys without an effect on device bytes are named") {
  const AllocConf conf = read(
      "pinned_use_background_threads:True,release_lock_on_cudamalloc:False,"
      "pinned_num_register_threads:8,graph_capture_record_stream_reuse:True,"
      "pinned_use_cuda_host_register:True,pinned_max_round_threshold_mb:64,"
      "pinned_max_cached_size_mb:64,pinned_reserve_segment_size_mb:4,"
      "pinned_free_catch_all:True,expandable_segments_reserve:0.5,"
      "expandable_segments_reserve_by_class:[capture:0.25,workspace:40G],"
      "pinned_use_background_threads:False,max_split_size_mb:20");
  CHECK(conf.without_effect ==
        std::vector<std::string>{"pinned_use_background_threads", "release_lock_on_cudamalloc",
                                 "pinned_num_register_threads", "graph_capture_record_stream_reuse",
                                 "pinned_use_cuda_host_register", "pinned_max_round_threshold_mb",
                                 "pinned_max_cached_size_mb", "pinned_reserve_segment_size_mb",
                                 "pinned_free_catch_all", "expandable_segments_reserve",
                                 "expandable_segments_reserve_by_class"});
  CHECK(conf.settings.max_split_size == 20_MiB);
}

TEST_CASE("A misspelt key") {
  CHECK(mistakes_of("expandable_segments:True,max_splt_size_mb:64") ==
        "conf:1:26: error: unknown key 'max_splt_size_mb'\n"
        "  expandable_segments:True,max_splt_size_mb:64\n"
        "                           ^~~~~~~~~~~~~~~~\n"
        "  did you mean 'max_split_size_mb'?\n");
}

TEST_CASE("All mistakes at once, in their order") {
  CHECK(mistakes_of("max_split_size_mb:8,x:1,large_segment_size_mb:10") ==
        "conf:1:19: error: 'max_split_size_mb' must be at least 20, the size of a large segment\n"
        "  max_split_size_mb:8,x:1,large_segment_size_mb:10\n"
        "                    ^\n"
        "conf:1:21: error: unknown key 'x'\n"
        "  max_split_size_mb:8,x:1,large_segment_size_mb:10\n"
        "                      ^\n"
        "conf:1:47: error: 'large_segment_size_mb' must be more than 10\n"
        "  max_split_size_mb:8,x:1,large_segment_size_mb:10\n"
        "                                                ^~\n");
}

TEST_CASE("Values of the wrong form") {
  const auto first_line = [](std::string_view text) {
    const std::string all = mistakes_of(text);
    return all.substr(0, all.find('\n'));
  };
  CHECK(first_line("max_split_size_mb:20mb") ==
        "conf:1:19: error: expected a whole number, found '20mb'");
  CHECK(first_line("max_split_size_mb:-20") ==
        "conf:1:19: error: expected a whole number, found '-20'");
  CHECK(first_line("max_split_size_mb:[20]") ==
        "conf:1:19: error: 'max_split_size_mb' takes a whole number, not a list");
  CHECK(first_line("max_non_split_rounding_mb:19") ==
        "conf:1:27: error: 'max_non_split_rounding_mb' must be at least 20, the size of a large "
        "segment");
  CHECK(first_line("garbage_collection_threshold:1.0") ==
        "conf:1:30: error: 'garbage_collection_threshold' must be a number between 0 and 1, not "
        "'1.0'");
  CHECK(first_line("garbage_collection_threshold:nan") ==
        "conf:1:30: error: 'garbage_collection_threshold' must be a number between 0 and 1, not "
        "'nan'");
  CHECK(first_line("per_process_memory_fraction:1.5") ==
        "conf:1:29: error: 'per_process_memory_fraction' must be a number from 0 to 1, not '1.5'");
  CHECK(first_line("backend:cudaMallocAsync") ==
        "conf:1:9: error: the backend 'cudaMallocAsync' is not simulated");
  CHECK(first_line("backend:jemalloc") == "conf:1:9: error: unknown backend 'jemalloc'");
  CHECK(first_line("roundup_power2_divisions:3") ==
        "conf:1:26: error: 'roundup_power2_divisions' must be a power of two, not 3");
  CHECK(first_line("roundup_power2_divisions:36028797018963968") ==
        "conf:1:26: error: 36028797018963968 divisions are more than PyTorch can multiply by 512 "
        "in 64 bits; it takes up to 18014398509481984");
  CHECK(first_line("roundup_power2_divisions:[64:3]") ==
        "conf:1:30: error: divisions must be 0 or a power of two, not 3");
  CHECK(first_line("roundup_power2_divisions:[65:4]") ==
        "conf:1:27: error: a size must be a power of two in MiB, not 65");
  CHECK(first_line("roundup_power2_divisions:[64]") ==
        "conf:1:27: error: expected 'MiB:divisions' or '>:divisions' in the list");
  CHECK(first_line("roundup_power2_divisions:[64:2:4]") ==
        "conf:1:31: error: expected ',' or ']' in the list");
  CHECK(first_line("pinned_num_register_threads:many") ==
        "conf:1:29: error: expected a whole number, found 'many'");
  CHECK(mistakes_of("expandable_segments:true") ==
        "conf:1:21: error: 'expandable_segments' must be True or False, not 'true'\n"
        "  expandable_segments:true\n"
        "                      ^~~~\n"
        "  did you mean 'True'?\n");
}

TEST_CASE("A broken form") {
  const auto first_line = [](std::string_view text) {
    const std::string all = mistakes_of(text);
    return all.substr(0, all.find('\n'));
  };
  CHECK(first_line("expandable_segments") ==
        "conf:1:20: error: expected ':' and a value after 'expandable_segments', found the end");
  CHECK(first_line("expandable_segments=True") ==
        "conf:1:25: error: expected ':' and a value after 'expandable_segments=True', found the "
        "end");
  CHECK(first_line("expandable_segments:") ==
        "conf:1:21: error: expected a value for 'expandable_segments', found the end");
  CHECK(first_line("expandable_segments:,a:1") ==
        "conf:1:21: error: expected a value for 'expandable_segments', found ','");
  CHECK(first_line(",a:1") == "conf:1:1: error: expected a key, found ','");
  CHECK(first_line("roundup_power2_divisions:[64:2") ==
        "conf:1:26: error: this '[' is never closed");
  CHECK(first_line("backend:native:x") == "conf:1:15: error: expected ',' or the end, found ':'");
}

TEST_CASE("The name that the user knows it by") {
  const auto conf = parse_alloc_conf("a:1");
  REQUIRE_FALSE(conf.has_value());
  CHECK(conf.error()[0].span.source->name == "PYTORCH_ALLOC_CONF");
}

}  // namespace stowage
