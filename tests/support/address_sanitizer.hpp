// Whether this is compiled with AddressSanitizer, which reserves terabytes of addresses.
#pragma once

// GCC defines the one, clang has the other.
#if defined(__has_feature)
#define STOWAGE_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define STOWAGE_ADDRESS_SANITIZER 1
#else
#define STOWAGE_ADDRESS_SANITIZER 0
#endif
