/* The arena is reserved but not committed. Freed buffers keep their pages for the next ones, which
 * often have the same place and the same blocks: a page fault takes as long as a thousand
 * thread-instructions. Once the process has KEPT_MEMORY, the pages of freed buffers go back to the
 * system. Tags of freed buffers are of earlier launches, and a new buffer is poisoned, so that what
 * is left there does not matter. */
#include "eval/sim/machine/device_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

enum {
    LOOK_EVERY = 48 << 20, /* bytes of freed buffers between looks at the process's memory */
    KEPT_MEMORY = 1 << 30, /* bytes */
    CLEARED = 1 << 19      /* smaller ranges are cleared by hand */
};

static void *reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Zeroes a range and gives whole pages back. The rest of its first and last page is cleared. */
static void forget(void *base, size_t from, size_t bytes)
{
    unsigned char *p = (unsigned char *)base + from, *end = p + bytes;
    unsigned char *first = (unsigned char *)(((uintptr_t)p + 4095) & ~(uintptr_t)4095);
    unsigned char *last = (unsigned char *)((uintptr_t)end & ~(uintptr_t)4095);
    if (bytes < CLEARED || last <= first) {
        memset(p, 0, bytes);
        return;
    }
    memset(p, 0, (size_t)(first - p));
    memset(last, 0, (size_t)(end - last));
    madvise(first, (size_t)(last - first), MADV_DONTNEED);
}

int devmem_open(DevMem *m, size_t bytes, Error *err)
{
    memset(m, 0, sizeof *m);
    m->bytes = bytes;
    m->data = reserve(bytes);
    m->written = reserve(bytes / 8);
    m->undefined = reserve(bytes / 8);
    m->writer = reserve(bytes * 2);
    m->reader = reserve(bytes * 2);
    m->touched = reserve(bytes / 8);
    m->atomics = reserve(bytes / 4);
    m->covered = reserve(bytes / 4);
    m->marked = memory_array(bytes / DEVMEM_MARKED + 1, 1);
    m->seen = memory_array(bytes / DEVMEM_PAGE / 8 + 1, 1);
    m->l1 = memory_array(L1_MAX_SETS * L1_WAYS, sizeof *m->l1);
    m->l1_sets = L1_MAX_SETS;
    m->next_tag = m->tag_floor = 1;
    if (m->data && m->written && m->undefined && m->writer && m->reader && m->touched &&
        m->atomics && m->covered)
        return 0;
    error_errno(err,
                "the simulator's memory of %zu MiB and its shadow of %zu MiB cannot be reserved",
                bytes >> 20, (bytes * 4 + bytes * 7 / 8) >> 20);
    devmem_close(m);
    return -1;
}

void devmem_close(DevMem *m)
{
    if (m->data) munmap(m->data, m->bytes);
    if (m->written) munmap(m->written, m->bytes / 8);
    if (m->undefined) munmap(m->undefined, m->bytes / 8);
    if (m->writer) munmap(m->writer, m->bytes * 2);
    if (m->reader) munmap(m->reader, m->bytes * 2);
    if (m->touched) munmap(m->touched, m->bytes / 8);
    if (m->atomics) munmap(m->atomics, m->bytes / 4);
    if (m->covered) munmap(m->covered, m->bytes / 4);
    for (int i = 0; i < m->n_allocs; i++) free(m->allocs[i].undefined);
    free(m->seen);
    free(m->l1);
    free(m->marked);
    free(m->allocs);
    free(m->tag_block);
    free(m->tag_released);
    free(m->tag_order);
    memset(m, 0, sizeof *m);
}

/* ---- allocations ---- */

int devmem_new(DevMem *m, size_t bytes, const char *label, uint64_t *address, Error *err)
{
    if (bytes > m->bytes || m->n_allocs >= DEVMEM_MAX_ALLOCS)
        return error_set(err, ERROR_MEMORY,
                         "no room for a buffer of %zu bytes in %zu MiB of device memory", bytes,
                         m->bytes >> 20);
    uint64_t size = (bytes + 255) & ~(uint64_t)255, at = ARENA_BASE + ARENA_GAP;
    int i = 0;
    for (; i < m->n_allocs; i++) { /* first fit, with a gap on both sides */
        if (m->allocs[i].base >= at + size + ARENA_GAP) break;
        at = (m->allocs[i].base + m->allocs[i].room + ARENA_GAP + 255) & ~(uint64_t)255;
    }
    if (at + size + ARENA_GAP > ARENA_BASE + m->bytes)
        return error_set(err, ERROR_MEMORY,
                         "no room for a buffer of %zu bytes in %zu MiB of device memory", bytes,
                         m->bytes >> 20);
    if (m->n_allocs == m->cap_allocs) {
        m->cap_allocs = m->cap_allocs ? m->cap_allocs * 2 : 64;
        m->allocs = memory_grow(m->allocs, (size_t)m->cap_allocs, sizeof(Alloc));
    }
    memmove(&m->allocs[i + 1], &m->allocs[i], sizeof(Alloc) * (size_t)(m->n_allocs - i));
    m->n_allocs++;
    Alloc *a = &m->allocs[i];
    *a = (Alloc){.base = at, .bytes = bytes, .room = bytes};
    snprintf(a->label, sizeof a->label, "%s", label ? label : "a buffer");
    memcpy(a->first_label, a->label, sizeof a->label);
    m->used += size;
    *address = at;
    devmem_poison(m, a);
    return 0;
}

/* Gives back the pages of arena bytes [from, end), multiples of 256, and of their shadows. */
static void give_back(DevMem *m, size_t from, size_t end)
{
    size_t bytes = end - from;
    forget(m->data, from, bytes);
    forget(m->written, from / 8, bytes / 8);
    forget(m->undefined, from / 8, bytes / 8);
    forget(m->writer, from * 2, bytes * 2);
    forget(m->reader, from * 2, bytes * 2);
    forget(m->touched, from / 8, bytes / 8);
    forget(m->atomics, from / 4, bytes / 4);
    forget(m->covered, from / 4, bytes / 4);
}

static void give_back_gaps(DevMem *m)
{
    size_t from = 0;
    for (int i = 0; i < m->n_allocs; i++) {
        size_t at = m->allocs[i].base - ARENA_BASE;
        give_back(m, from, at);
        from = at + ((m->allocs[i].room + 255) & ~(uint64_t)255);
    }
    give_back(m, from, m->bytes);
}

/* The process has KEPT_MEMORY, or its memory is unknown. */
static int has_much_memory(void)
{
    unsigned long long size, pages;
    FILE *f = fopen("/proc/self/statm", "re");
    int known = f && fscanf(f, "%llu %llu", &size, &pages) == 2;
    if (f) fclose(f);
    return !known || pages * (unsigned long long)sysconf(_SC_PAGESIZE) > KEPT_MEMORY;
}

/* No byte of the allocation holds an undefined value. */
static void forget_undefined(DevMem *m, Alloc *a)
{
    if (!a->undefined) return;
    free(a->undefined);
    a->undefined = NULL;
    m->n_undefined--;
    forget(m->undefined, (a->base - ARENA_BASE) / 8, ((a->room + 255) & ~(uint64_t)255) / 8);
}

int devmem_free(DevMem *m, uint64_t address)
{
    Alloc *a = devmem_at(m, address);
    if (!a) return -1;
    size_t bytes = (a->room + 255) & ~(uint64_t)255;
    forget_undefined(m, a);
    m->used -= bytes;
    int i = (int)(a - m->allocs);
    memmove(a, a + 1, sizeof(Alloc) * (size_t)(m->n_allocs - i - 1));
    m->n_allocs--;
    if ((m->kept += bytes) < LOOK_EVERY) return 0;
    m->kept = 0;
    if (has_much_memory()) give_back_gaps(m);
    return 0;
}

/* Returns the last allocation that starts at or before the address, or -1. */
static int find_before(const DevMem *m, uint64_t address)
{
    int lo = 0, hi = m->n_allocs;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (m->allocs[mid].base <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo - 1;
}

int devmem_find(const DevMem *m, uint64_t address)
{
    int i = find_before(m, address);
    return i >= 0 && address - m->allocs[i].base < m->allocs[i].bytes ? i : -1;
}

int devmem_near(const DevMem *m, uint64_t address)
{
    int i = find_before(m, address);
    if (i < 0) return m->n_allocs ? 0 : -1;
    /* The access begins inside and ends beyond. */
    if (address - m->allocs[i].base < m->allocs[i].bytes) return i;
    if (i + 1 < m->n_allocs) {
        uint64_t past = address - (m->allocs[i].base + m->allocs[i].bytes);
        if (m->allocs[i + 1].base - address < past) return i + 1;
    }
    return i;
}

Alloc *devmem_at(DevMem *m, uint64_t base)
{
    int i = find_before(m, base);
    return i >= 0 && m->allocs[i].base == base ? &m->allocs[i] : NULL;
}

/* ---- bytes written ---- */

void devmem_discard(DevMem *m, Alloc *a, uint64_t address, size_t bytes)
{
    memset(devmem_host(m, address), 0xff, bytes);
    memset(&m->written[(address - ARENA_BASE) / 64], 0, bytes / 8);
    if (a->undefined) memset(&m->undefined[(address - ARENA_BASE) / 64], 0, bytes / 8);
    a->all_written = 0;
}

static void set_bit(uint64_t *bits, uint64_t i, int on)
{
    bits[i >> 6] = (bits[i >> 6] & ~(1ull << (i & 63))) | (uint64_t)on << (i & 63);
}

void devmem_begin_undefined(DevMem *m, Alloc *a, const Fault *by)
{
    a->undefined = memory_alloc(sizeof *a->undefined);
    *a->undefined = *by;
    m->n_undefined++;
}

void devmem_mark_undefined(DevMem *m, Alloc *a, uint64_t lo, uint32_t mask)
{
    if (mask) a->all_written = 0;
    for (; mask; mask &= mask - 1) {
        uint64_t at = lo + (uint64_t)__builtin_ctz(mask);
        set_bit(m->written, at, 0);
        set_bit(m->undefined, at, 1);
    }
}

static uint32_t bits_at(const uint64_t *bits, uint64_t lo, int n)
{
    uint64_t v = bits[lo >> 6] >> (lo & 63);
    if ((lo & 63) + (uint64_t)n > 64) v |= bits[(lo >> 6) + 1] << (64 - (lo & 63));
    return (uint32_t)(n < 32 ? v & ((1ull << n) - 1) : v);
}

uint32_t devmem_unwritten(const DevMem *m, uint64_t lo, int n)
{
    return ~bits_at(m->written, lo, n) & (n < 32 ? (1u << n) - 1 : ~0u);
}

uint32_t devmem_undefined(const DevMem *m, uint64_t lo, int n)
{
    return bits_at(m->undefined, lo, n) & devmem_unwritten(m, lo, n);
}

/* Clears the bits of arena bytes [from, end), multiples of 256, where there may be any. */
static void clear_written(DevMem *m, size_t from, size_t end)
{
    for (size_t i = from / DEVMEM_MARKED; i * DEVMEM_MARKED < end; i++) {
        size_t at = i * DEVMEM_MARKED, next = at + DEVMEM_MARKED;
        if (!m->marked[i]) continue;
        if (at >= from && next <= end) m->marked[i] = 0;
        if (at < from) at = from;
        if (next > end) next = end;
        memset(m->written + at / 64, 0, (next - at) / 8);
    }
}

void devmem_unmark(DevMem *m, Alloc *a)
{
    size_t from = a->base - ARENA_BASE, bytes = (a->bytes + 255) & ~(uint64_t)255;
    clear_written(m, from, from + bytes);
    a->all_written = 0;
}

/* Nothing reads an unwritten byte of a large buffer: devmem_read and devmem_supply see to it. */
void devmem_poison(DevMem *m, Alloc *a)
{
    size_t from = a->base - ARENA_BASE, bytes = (a->bytes + 255) & ~(uint64_t)255;
    if (bytes < DEVMEM_SPARSE) memset(m->data + from, 0xff, bytes);
    clear_written(m, from, from + bytes);
    forget_undefined(m, a);
    a->all_written = 0;
}

int devmem_renew(DevMem *m, uint64_t base, size_t bytes, const char *label)
{
    Alloc *a = devmem_at(m, base);
    if (!a || bytes > a->room) return -1;
    a->bytes = bytes;
    snprintf(a->label, sizeof a->label, "%s", label);
    devmem_poison(m, a);
    return 0;
}

void devmem_reset(DevMem *m, Alloc *a)
{
    a->bytes = a->room;
    memcpy(a->label, a->first_label, sizeof a->label);
    devmem_poison(m, a);
}

/* The end of the chunk at `at` of a lazy allocation. */
static uint64_t chunk_end(const Alloc *a, uint64_t at)
{
    return a->bytes - at < DEVMEM_CHUNK ? a->bytes : at + DEVMEM_CHUNK;
}

static int is_drawn(const DevMem *m, const Alloc *a, uint64_t at)
{
    uint64_t base = a->base - ARENA_BASE;
    return devmem_is_written(m, base + at, base + chunk_end(a, at));
}

/* Draws the chunks of a lazy allocation that hold unwritten bytes of [lo, hi), neighbours together. */
static int draw_chunks(DevMem *m, const Alloc *a, uint64_t lo, uint64_t hi)
{
    uint64_t base = a->base - ARENA_BASE, at = (lo - base) / DEVMEM_CHUNK * DEVMEM_CHUNK, end;
    if (hi - lo >= DEVMEM_DRAWN) memory_huge(m->data + lo, hi - lo);
    for (; at < hi - base; at = end) {
        end = chunk_end(a, at);
        if (is_drawn(m, a, at)) continue;
        while (end < hi - base && end - at < DEVMEM_DRAWN && !is_drawn(m, a, end))
            end = chunk_end(a, end);
        if (!a->fill(a->fill_of, a->fill_input, at, m->data + base + at, end - at)) return -1;
        devmem_mark_written(m, base + at, base + end);
    }
    return 0;
}

static int is_clear(const unsigned char *p, uint64_t n)
{
    static const unsigned char zeros[64];
    return !memcmp(p, zeros, n);
}

/* Of bytes that have their bits in one word. What is clear is not stored to: the system has one page for all
 * that nothing has stored to. */
static void clear_unwritten(DevMem *m, uint64_t lo, uint64_t hi)
{
    uint64_t bits = m->written[lo / 64] >> lo % 64 & ~0ull >> (64 - (hi - lo));
    if (!bits) {
        if (!is_clear(m->data + lo, hi - lo)) memset(m->data + lo, 0, hi - lo);
        return;
    }
    for (uint64_t i = lo; i < hi; i++)
        if (!(bits >> (i - lo) & 1)) m->data[i] = 0;
}

int devmem_supply(DevMem *m, const Alloc *a, uint64_t lo, uint64_t hi)
{
    if (a->fill) return draw_chunks(m, a, lo, hi);
    if (!m->assume || a->read_only) return -1;
    for (uint64_t i = lo, end; i < hi; i = end) {
        end = (i / 64 + 1) * 64 < hi ? (i / 64 + 1) * 64 : hi;
        clear_unwritten(m, i, end);
    }
    m->assumed = 1;
    return 0;
}

int devmem_hold(DevMem *m, const Alloc *a, uint64_t lo, uint64_t hi)
{
    if (!a->fill) return devmem_is_written(m, lo, hi) ? 0 : devmem_supply(m, a, lo, hi);
    return a->fill(a->fill_of, a->fill_input, lo - (a->base - ARENA_BASE), NULL, hi - lo) ? 0 : -1;
}

unsigned char *devmem_held(DevMem *m, uint64_t address)
{
    int at = devmem_find(m, address);
    const Alloc *a = at < 0 ? NULL : &m->allocs[at];
    if (!a || !a->fill) return devmem_host(m, address);
    return (unsigned char *)a->fill(a->fill_of, a->fill_input, address - a->base, NULL, 0);
}

int devmem_read(DevMem *m, Alloc *a, uint64_t address, void *dst, size_t bytes)
{
    uint64_t from = address - ARENA_BASE;
    unsigned char *out = dst;
    if (!bytes) return 0;
    if (a->fill && draw_chunks(m, a, from, from + bytes)) return -1;
    memcpy(out, m->data + from, bytes);
    if (a->all_written || a->bytes < DEVMEM_SPARSE) return 0;
    for (uint64_t i = 0; i < bytes; i++) {
        uint64_t bits = m->written[(from + i) >> 6];
        if (!((from + i) & 63) && bits == ~0ull && bytes - i >= 64)
            i += 63;
        else if (!(bits >> ((from + i) & 63) & 1))
            out[i] = 0xff;
    }
    return 0;
}

void devmem_set_written(DevMem *m, uint64_t address, size_t bytes)
{
    if (!bytes) return;
    devmem_mark_written(m, address - ARENA_BASE, address - ARENA_BASE + bytes);
    Alloc *a = devmem_at(m, address);
    if (a && a->bytes == bytes) a->all_written = 1;
}

/* ---- launches and block tags ---- */

void devmem_assume(DevMem *m, int on)
{
    m->assume = on;
    if (!on) return;
    m->assumed = 0;
    for (int i = 0; i < m->n_allocs; i++) {
        Alloc *a = &m->allocs[i];
        a->atomics = a->written_sectors = 0;
        a->changed = 0;
    }
}

void devmem_forget_traffic(DevMem *m)
{
    if (m->loads > m->loads_most) m->loads_most = m->loads;
    m->next_age = m->age_length = m->loads_most ? m->loads_most / (TOUCH_AGES - 4) + 1 : 0;
    m->loads = m->age = 0;
    if (++m->launch_id < 1u << (32 - TOUCH_ID)) return;
    forget(m->touched, 0, m->bytes / 8);
    forget(m->atomics, 0, m->bytes / 4);
    forget(m->covered, 0, m->bytes / 4);
    m->launch_id = m->first_id = 1;
}

static void begin_parts(Alloc *a)
{
    uint64_t last = a->room ? (a->room - 1) >> 5 : 0;
    memset(a->part, 0, sizeof a->part);
    a->part_shift = 0;
    while (last >> a->part_shift >= DEVMEM_PARTS) a->part_shift++;
}

void devmem_launch(DevMem *m)
{
    if (m->next_tag > 0xf0000000u) {
        forget(m->writer, 0, m->bytes * 2);
        forget(m->reader, 0, m->bytes * 2);
        memset(m->l1, 0, L1_MAX_SETS * L1_WAYS * sizeof *m->l1);
        m->next_tag = 1;
    }
    m->loads = m->loads_most = 0;
    devmem_forget_traffic(m);
    m->first_id = m->launch_id;
    memset(m->near, 0, sizeof m->near);
    memset(m->seen, 0, m->bytes / DEVMEM_PAGE / 8 + 1);
    for (int i = 0; i < m->n_allocs; i++) {
        m->allocs[i].changed |= m->allocs[i].written_sectors != 0;
        m->allocs[i].read_sectors = m->allocs[i].written_sectors = m->allocs[i].near_sectors = 0;
        m->allocs[i].asked = m->allocs[i].waits = 0;
        begin_parts(&m->allocs[i]);
    }
    m->copy_waits = 0;
    m->tag_floor = m->next_tag++; /* the floor itself means "several blocks" */
    m->n_tags = 1;
}

uint32_t devmem_take_tag(DevMem *m, uint32_t block)
{
    if (m->n_tags >= m->cap_tags) {
        m->cap_tags = m->cap_tags ? m->cap_tags * 2 : 1024;
        m->tag_block = memory_grow(m->tag_block, (size_t)m->cap_tags, sizeof *m->tag_block);
        m->tag_released = memory_grow(m->tag_released, (size_t)m->cap_tags, 1);
        m->tag_order = memory_grow(m->tag_order, (size_t)m->cap_tags, sizeof *m->tag_order);
    }
    m->tag_block[m->n_tags] = block;
    m->tag_released[m->n_tags] = 0;
    m->tag_order[m->n_tags] = 0;
    m->n_tags++;
    return m->next_tag++;
}

/* The first bit in [i, n) behind `base` that is not the one repeated in `other`; n: none. Pages of
 * bits that nothing has marked are not touched. */
static size_t next_bit(const DevMem *m, size_t base, size_t i, size_t n, uint64_t other)
{
    for (; i < n; i = (i / 64 + 1) * 64) {
        size_t at = base + i, page = at / DEVMEM_MARKED;
        if (!m->marked[page]) {
            if (other) return i;
            i = (page + 1) * DEVMEM_MARKED - base - 64;
            continue;
        }
        uint64_t word = (m->written[at / 64] ^ other) >> i % 64;
        if (word) i += (size_t)__builtin_ctzll(word);
        if (word) break;
    }
    return i < n ? i : n;
}

int devmem_next_written(const DevMem *m, const Alloc *a, size_t limit, size_t *from, size_t *end)
{
    size_t base = a->base - ARENA_BASE, n = limit < a->bytes ? limit : a->bytes,
           first = next_bit(m, base, *from, n, 0);
    if (first >= n) return 0;
    *from = first;
    *end = next_bit(m, base, first, n, ~0ull);
    return 1;
}
