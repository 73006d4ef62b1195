/* Two fifths of the memory are for buffers, as much at most for contents, and half of the rest for local
 * memory. A plan gets half of the buffers, and a third of the contents stays free. */
#include "eval/device/memory_shares.h"

static const uint64_t max_contents = (uint64_t)24 << 30;
/* CUDA's limit for a thread. */
static const uint64_t max_local = 512 << 10;

void memory_shares(uint64_t bytes, uint64_t resident_threads, MemoryShares *out)
{
    uint64_t large = bytes / 10 * 4;
    out->buffers = large;
    out->contents = large < max_contents ? large : max_contents;
    out->plan = out->buffers / 2;
    out->kept = out->contents / 3 * 2;
    /* The other half of the rest is for contexts, modules and other processes. */
    uint64_t local = (bytes - out->buffers - out->contents) / 2;
    if (resident_threads) local /= resident_threads;
    out->local = (size_t)(local < max_local ? local : max_local);
}
