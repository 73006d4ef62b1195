/* Global memory of the simulated device: one arena of reserved address space, a sorted table of
 * allocations with gaps between them, and the shadows that the checks read. Per byte the shadows
 * have a bit "written" and, of an unwritten byte, a bit that says that the value which was stored
 * there is undefined; per word the tags of the last writer and reader; per sector of 32 bytes the
 * last launch that touched it, its atomics, and the bytes that it wrote. Tags and launch numbers
 * grow, so that a launch starts without clearing a shadow. */
#ifndef EVAL_SIM_MACHINE_DEVICE_MEMORY_H
#define EVAL_SIM_MACHINE_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "eval/device/device.h"
#include "eval/sim/machine/ranges.h"
#include "eval/sim/ptx/ptx.h"

#define ARENA_BASE 0x700000000000u

enum {
    ARENA_GAP = 4096,
    L1_WAYS = 4,
    L1_MAX_SETS = 512, /* of L1_WAYS lines with 128 bytes each */
    DEVMEM_MAX_ALLOCS = 1 << 16,
    DEVMEM_CHUNK = 1 << 10,
    DEVMEM_DRAWN =
        1 << 20, /* bytes that are drawn together: they are in a cache when they are copied */
    DEVMEM_MARKED = 1 << 15,
    DEVMEM_PAGE = 4096,
    DEVMEM_NEAR = 4096, /* a power of two */
    DEVMEM_PARTS = 16,
    TOUCH_READ = 1, /* parts of `touched` */
    TOUCH_WRITTEN = 2,
    TOUCH_AGE = 2, /* the lowest bit of the age, and of the launch behind it */
    TOUCH_ID = 8,
    TOUCH_AGES = 1 << (TOUCH_ID - TOUCH_AGE),
    DEVMEM_SPARSE = 4 << 20 /* bytes from which on a poisoned buffer is not filled with 0xff */
};

typedef struct {
    uint64_t base, bytes; /* base: the device address */
    uint64_t room;        /* bytes that it was allocated with */
    char label[64];
    char first_label[64]; /* with which it was allocated */
    int read_only;
    int all_written;  /* every byte: the bits need no look */
    int scratch;      /* nobody but kernels reads it: an undefined value may lie there */
    int variable;     /* of a module */
    int steady;       /* the launch that runs stores nothing to it */
    Fault *undefined; /* the store that left one there; NULL: none does, or did */
    /* Contents that are drawn when they are first read, DEVMEM_CHUNK bytes at a time; NULL: none. */
    DeviceFill *fill;
    void *fill_of;
    int fill_input;
    uint64_t read_sectors, written_sectors; /* distinct in each block, since devmem_launch */
    uint64_t near_sectors; /* of those that were read, those that the block before read, too */
    uint64_t waits;        /* of warps, for sectors that their block read for the first time */
    struct AllocPart {     /* of each DEVMEM_PARTS-th of the buffer, or of less, in whole sectors */
        uint64_t read;     /* of read_sectors */
        uint32_t launch_id; /* of the last block that read it */
        uint32_t blocks;    /* that read it, since devmem_launch */
    } part[DEVMEM_PARTS];
    int part_shift;   /* sector >> part_shift: the part, counted from the first sector */
    uint64_t asked;   /* bytes of distinct addresses in each request, since devmem_launch */
    uint64_t atomics; /* requests, since devmem_assume */
    int changed;      /* by an earlier launch, since then */
} Alloc;

typedef struct {
    unsigned char *data;
    uint64_t *written;     /* a bit per byte */
    uint64_t *undefined;   /* a bit per byte, which counts where the byte is unwritten */
    int n_undefined;       /* allocations that have such bytes */
    unsigned char *marked; /* by pages of `written`, for DEVMEM_MARKED bytes: it may have bits */
    uint64_t *writer, *reader; /* a tag per word (shadow_global.c) */
    uint32_t *touched;         /* per sector: launch << 8 | age << 2 | written << 1 | read */
    uint64_t *atomics;         /* per line: launch << 32 | turns of atomics (traffic.c) */
    uint64_t *covered;         /* per sector: launch << 32 | a bit for each byte that it wrote */
    /* L1_WAYS entries for each set, the last used first: block tag << 32 | line << 4 | a bit for
     * each sector that is present. l1_sets of them are used, a power of two. */
    uint64_t *l1;
    uint32_t l1_sets;
    /* Pages of 4096 bytes that the launch has used: a bit each, and by a hash page + 1 of the last ones. */
    unsigned char *seen;
    uint32_t near[DEVMEM_NEAR];
    size_t bytes; /* of the arena */
    size_t used;
    size_t kept;   /* bytes of buffers that were freed since the process's memory was looked at */
    Alloc *allocs; /* sorted by base */
    int n_allocs, cap_allocs;
    uint32_t next_tag, tag_floor; /* block tags; tags below the floor are of earlier launches */
    uint32_t *tag_block;          /* the block that took tag floor + i */
    unsigned char *tag_released;  /* the block executed a fence after its stores with this tag */
    uint32_t *tag_order;          /* what the fence before this tag releases (memory/order.h) */
    int n_tags, cap_tags;
    uint32_t launch_id, first_id; /* first_id: at devmem_launch */
    uint64_t copy_waits;          /* as a buffer's `waits`, behind copies to shared memory */
    /* The loads past L1 of the block, in sectors; the most of a block of the launch before it; and its age,
     * which rises by one for each age_length of them. 0: it is the launch's first block. */
    uint64_t loads, loads_most, age_length, age, next_age;
    int assume;  /* unwritten bytes of a writable buffer read as zeros, which is no fault */
    int assumed; /* that has happened, or a load of a variable that other blocks may have changed */
    AccessTrace *trace;             /* of what kernels access; NULL: nobody asks */
    struct VisitedLaunches *visits; /* coverage/visits.h; NULL: they are not kept */
} DevMem;

/* Reserves `bytes` of memory, a multiple of the page size. Returns 0 or -1. */
int devmem_open(DevMem *m, size_t bytes, Error *err);
void devmem_close(DevMem *m);

/* Allocates a poisoned buffer: its bytes are 0xff and count as unwritten. */
int devmem_new(DevMem *m, size_t bytes, const char *label, uint64_t *address, Error *err);
int devmem_free(DevMem *m, uint64_t address); /* -1: no buffer starts there */

int devmem_find(const DevMem *m, uint64_t address); /* index of the allocation around it, or -1 */
int devmem_near(const DevMem *m, uint64_t address); /* index of the nearest allocation; -1: none */
Alloc *devmem_at(DevMem *m, uint64_t base);         /* the allocation that starts there, or NULL */

void devmem_poison(DevMem *m, Alloc *a);
/* Nothing in the buffer counts as written from now on; its bytes stay. */
void devmem_unmark(DevMem *m, Alloc *a);
/* The bytes, multiples of 64 at such an address in the buffer, are unwritten from now on. */
void devmem_discard(DevMem *m, Alloc *a, uint64_t address, size_t bytes);
/* The buffer at base has other contents from now on: poisoned, of `bytes` bytes of its room. Returns
 * 0, or -1: no buffer with such room starts there. */
int devmem_renew(DevMem *m, uint64_t base, size_t bytes, const char *label);
/* Poisons the buffer as it was allocated: all of its room, under its first label. */
void devmem_reset(DevMem *m, Alloc *a);
void devmem_set_written(DevMem *m, uint64_t address, size_t bytes);

/* The allocation has undefined values from now on, by such a store. */
void devmem_begin_undefined(DevMem *m, Alloc *a, const Fault *by);
/* Of such an allocation: the bytes of the mask from `lo` of the arena on hold an undefined value. */
void devmem_mark_undefined(DevMem *m, Alloc *a, uint64_t lo, uint32_t mask);
/* A bit for each of the first 32 of n bytes from there on: those that do; those that are unwritten. */
uint32_t devmem_undefined(const DevMem *m, uint64_t lo, int n);
uint32_t devmem_unwritten(const DevMem *m, uint64_t lo, int n);

/* The first run of written bytes of the allocation at or after *from and before limit: [*from, *end).
 * 0: there is none. */
int devmem_next_written(const DevMem *m, const Alloc *a, size_t limit, size_t *from, size_t *end);

/* Copies bytes out. Unwritten bytes are the poison 0xff, or are drawn first. */
int devmem_read(DevMem *m, Alloc *a, uint64_t address, void *dst, size_t bytes);
/* Makes the unwritten bytes [lo, hi) of the arena, in one allocation, readable: draws or assumes
 * them. Returns 0, or -1: they stay unwritten. */
int devmem_supply(DevMem *m, const Alloc *a, uint64_t lo, uint64_t hi);
/* Makes the bytes readable where devmem_held says that they lie, which for contents that are drawn is where
 * they are kept. Returns 0 or -1. */
int devmem_hold(DevMem *m, const Alloc *a, uint64_t lo, uint64_t hi);
unsigned char *devmem_held(DevMem *m, uint64_t address);

void devmem_assume(DevMem *m, int on); /* sets assume; on: nothing has been assumed yet */
void devmem_forget_traffic(DevMem *m); /* no sector counts as touched */
void devmem_launch(DevMem *m); /* starts a launch: all tags of earlier ones become history */
uint32_t devmem_take_tag(DevMem *m, uint32_t block);

static inline unsigned char *devmem_host(const DevMem *m, uint64_t address)
{
    return m->data + (address - ARENA_BASE);
}

/* Are the bytes [lo, hi) of the arena written? */
static inline int devmem_is_written(const DevMem *m, uint64_t lo, uint64_t hi)
{
    uint64_t a = lo >> 6, b = (hi - 1) >> 6;
    uint64_t first = ~0ull << (lo & 63), last = ~0ull >> (63 - ((hi - 1) & 63));
    if (a == b) return (m->written[a] & first & last) == (first & last);
    if ((m->written[a] & first) != first || (m->written[b] & last) != last) return 0;
    for (uint64_t i = a + 1; i < b; i++)
        if (m->written[i] != ~0ull) return 0;
    return 1;
}

static inline void devmem_mark_written(DevMem *m, uint64_t lo, uint64_t hi)
{
    uint64_t a = lo >> 6, b = (hi - 1) >> 6;
    uint64_t first = ~0ull << (lo & 63), last = ~0ull >> (63 - ((hi - 1) & 63));
    for (uint64_t i = lo / DEVMEM_MARKED; i <= (hi - 1) / DEVMEM_MARKED; i++) m->marked[i] = 1;
    if (a == b) {
        m->written[a] |= first & last;
        return;
    }
    m->written[a] |= first;
    m->written[b] |= last;
    for (uint64_t i = a + 1; i < b; i++) m->written[i] = ~0ull;
}

#endif
