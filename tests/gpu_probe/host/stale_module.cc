// Host kernels of another build, and with STOWAGE_UNSAID of one that does not say which. Nobody may
// call the table: it is not one.
extern "C" {
const void* stowage_host_kernels() { return nullptr; }
#ifndef STOWAGE_UNSAID
const char* stowage_host_kernels_build() { return "0123456789abcdef"; }
#endif
}
