/* Instead of the driver's interface, whose functions a device does not have. */
#ifndef QUERN_DRIVER_TYPES
#define QUERN_DRIVER_TYPES
typedef unsigned long long CUdeviceptr;
typedef struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
} CUtensorMap;
#endif
