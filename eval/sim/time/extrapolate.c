/* Counts of some blocks, and of a small launch, become those of a whole launch. */
#include "eval/sim/time/extrapolate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/memory/block_waits.h"

enum { SECTOR = 32, PAIR_SECTORS = 8 };

static const size_t largest[] = {
    offsetof(SimCounts, global_atomic_hottest), offsetof(SimCounts, global_waits_max),
    offsetof(SimCounts, local_waits_max),       offsetof(SimCounts, chain_cycles_max),
    offsetof(SimCounts, warp_insts_max),        offsetof(SimCounts, block_barriers_max),
    offsetof(SimCounts, heaviest_insts),        offsetof(SimCounts, delay_max),
    offsetof(SimCounts, busy_path_max),         offsetof(SimCounts, heaviest_memory)};
enum { LARGEST = sizeof largest / sizeof *largest };

static uint64_t *field(SimCounts *c, size_t offset)
{
    return (uint64_t *)(void *)((char *)c + offset);
}

static uint64_t load_of(const SimCounts *c, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)c + offset);
}

static uint64_t whole(double v)
{
    return v < 1e18 ? (uint64_t)(v + 0.5) : (uint64_t)1e18;
}

/* The blocks with at least 15/16 of the load of the heaviest, which a field has: how many of the grid, and
 * the least load of them. */
static uint64_t find_heavy(const SimCounts *done, const double *weights, int n, size_t load,
                           uint64_t *least)
{
    double heavy = 0;
    uint64_t most = 0;
    for (int i = 0; i < n; i++)
        if (load_of(&done[i], load) > most) most = load_of(&done[i], load);
    *least = most;
    for (int i = 0; i < n; i++) {
        const uint64_t of = load_of(&done[i], load);
        if (of < most - most / 16) continue;
        if (of < *least) *least = of;
        heavy += weights[i];
    }
    return whole(heavy);
}

/* Does the block's hottest line take an eighth of its atomics? Where they spread evenly, it is any one. */
static int has_hot_line(const SimCounts *block)
{
    enum { TURNS = 3 }; /* of a request that is not merged, at least */
    return block->global_atomic_hottest * 8 >= TURNS * block->global_atomic_sectors &&
           block->global_atomic_sectors;
}

/* The turns on one line that is the hottest of at least half of the sampled blocks, of the first ones as of
 * the last ones, which may lie apart: all blocks share it as these do. 0: there is none. */
static uint64_t on_shared_line(const SimCounts *done, int n, uint64_t blocks)
{
    for (int i = 0; i <= n / 2; i++) {
        double sum = 0;
        int sharers = 0, late = 0;
        for (int k = 0; k < n; k++) {
            if (!has_hot_line(&done[k]) || done[k].hottest_line != done[i].hottest_line) continue;
            sum += (double)done[k].global_atomic_hottest;
            sharers++;
            late += 2 * k >= n;
        }
        if (sharers > 1 && 2 * sharers >= n && 4 * late >= n - 1 && 4 * (sharers - late) >= n - 1)
            return whole(sum / n * (double)blocks);
    }
    return 0;
}

/* The turns on an average line where the blocks of the sample have used the same lines four times over, so
 * that no others are left. 0: they have not. */
static uint64_t on_few_lines(const SimCounts *done, int n, double turns)
{
    enum { TIMES = 4 };
    double lines = 0, distinct = 0;
    for (int i = 0; i < n; i++)
        lines += (double)done[i].atomic_lines, distinct += (double)done[i].atomic_first_lines;
    return distinct > 0 && lines >= TIMES * distinct ? whole(turns / distinct) : 0;
}

void extrapolate_blocks(const SimCounts *done, const double *weights, int n, SimCounts *out)
{
    double sum[COUNTS_FIELDS] = {0};
    uint64_t top[LARGEST] = {0}, one[COUNTS_FIELDS];
    *out = done[0];
    for (int i = 0; i < n; i++) {
        SimCounts block = done[i];
        memcpy(one, (char *)&block + COUNTS_FIRST, sizeof one);
        for (int k = 0; k < COUNTS_FIELDS; k++) sum[k] += (double)one[k] * weights[i];
        for (int k = 0; k < LARGEST; k++)
            if (*field(&block, largest[k]) > top[k]) top[k] = *field(&block, largest[k]);
    }
    for (int k = 0; k < COUNTS_FIELDS; k++) one[k] = whole(sum[k]);
    memcpy((char *)out + COUNTS_FIRST, one, sizeof one);
    for (int k = 0; k < LARGEST; k++) *field(out, largest[k]) = top[k];
    uint64_t average = on_few_lines(done, n, (double)out->atomic_turns);
    out->hottest_shared = on_shared_line(done, n, out->blocks);
    if (average > out->hottest_shared) out->hottest_shared = average;
    out->heavy_blocks =
        find_heavy(done, weights, n, offsetof(SimCounts, heaviest_insts), &out->heavy_insts);
    out->heavy_memory_blocks =
        find_heavy(done, weights, n, offsetof(SimCounts, heaviest_memory), &out->heavy_memory);
}

void extrapolate_behind(const SimCounts *done, int n, SimCounts *last)
{
    const uint64_t hottest = last->global_atomic_hottest;
    for (int k = 0; k < LARGEST; k++) {
        uint64_t most = 0, *own = field(last, largest[k]);
        for (int i = 0; i < n; i++)
            if (load_of(&done[i], largest[k]) > most) most = load_of(&done[i], largest[k]);
        if (*own > most) *own = most;
    }
    last->global_atomic_hottest = hottest;
}

void extrapolate_heaviest(double factor, SimCounts *c)
{
    if (factor <= 1) return;
    uint64_t hottest = c->global_atomic_hottest;
    for (int k = 0; k < LARGEST; k++)
        *field(c, largest[k]) = whole((double)*field(c, largest[k]) * factor);
    c->global_atomic_hottest = hottest;
    c->heavy_insts = c->heaviest_insts;
    c->heavy_blocks = 1;
}

/* A buffer that one sampled block of many writes has too large a share of the writes. What would be
 * more than such a buffer holds goes to the other buffers that are written, as far as they have
 * room. Returns the share of their room. */
static double share_of_room(const BufferTraffic *buffers, int n, double write_scale)
{
    double excess = 0, room = 0;
    for (int i = 0; i < n; i++) {
        double sectors = ceil(buffers[i].size / SECTOR), out = buffers[i].written * write_scale;
        if (out > sectors) excess += out - sectors;
        if (out > 0 && out < sectors) room += sectors - out;
    }
    return room > 0 ? fmin(1, excess / room) : 0;
}

/* Sectors that L2 reads because the launch has written a part of them. `writes`: the distinct
 * sectors that it writes. Blocks that share a sector fill it together. A sector that stays in L2 is
 * not read. */
static double fills(const SimCounts *c, double writes, double footprint, double l2_size)
{
    double missing = writes * SECTOR - (double)c->covered_bytes;
    if (footprint * SECTOR <= l2_size || missing <= 0) return 0;
    return fmin(fmin((double)c->part_sectors, missing), writes);
}

/* The distinct share of what n blocks in a row read, of which each shares a part with the next. */
static double distinct(double n, double shared)
{
    return (1 + (n - 1) * (1 - shared)) / n;
}

/* Sectors of a buffer that a wave of `resident` blocks reads. all: of all blocks, counted for each;
 * once: that are distinct. */
static double wave_reads(const BufferTraffic *b, const SimCounts *c, double resident, double all,
                         double once)
{
    if (all <= 0) return 0;
    double row = fmin(b->apart > 0 ? b->apart : (double)c->blocks, resident), rows = resident / row,
           each = all / (double)c->blocks * resident,
           least = each * once / all; /* no sector is read more often than all/once times */
    return fmin(fmax(least, each * distinct(row, b->shared[0]) * distinct(rows, b->shared[1])),
                once);
}

double extrapolate_kept(const Profile *p, double bytes)
{
    double ratio = bytes / (double)p->l2_size, kept = 0;
    if (ratio <= 1) return 1;
    for (int i = 0; i < 100; i++) kept = exp(-(1 - kept) * ratio);
    return kept;
}

/* The turns on each line that resident blocks use at a time, in a sum over the launch. lines: of the buffers
 * with atomics. Where neighbours share lines, a wave uses its part of all. */
static double turns_on_each(const SimCounts *c, double lines, double resident)
{
    double all = (double)c->atomic_lines, once = fmin(all, lines),
           part = resident / (double)c->blocks;
    if (once <= 0) return 0;
    double near = (double)c->atomic_near_lines / all, apart = fmin(once, all * part);
    return (double)c->atomic_turns / fmax(1, near * once * part + (1 - near) * apart);
}

/* How many blocks of an SM read the same sector, where the blocks of a wave read `each` sectors of a
 * buffer and `wave` of them are distinct. They share the SM's L1. */
static double on_one_sm(const Profile *p, double each, double wave, double resident)
{
    double sharers = wave > 0 ? each / wave : 1;
    return fmax(1, fmin(sharers, resident) / p->sm_count);
}

/* What all blocks read of a buffer, or of the parts of it that nearly all of them read, in sectors. */
typedef struct {
    double all;   /* counted for each block */
    double once;  /* that are distinct */
    double wave;  /* of `once`, those that a wave reads */
    double again; /* counted for each wave */
} Reads;

static Reads reads_of(const BufferTraffic *b, const SimCounts *c, double resident, double all,
                      double sectors)
{
    Reads r = {.all = all, .once = fmin(all, sectors)};
    r.wave = wave_reads(b, c, resident, all, r.once);
    r.again = fmin(all, fmax(r.once, r.wave * ceil((double)c->blocks / resident)));
    return r;
}

static void add_reads(Reads *sum, Reads r)
{
    sum->all += r.all, sum->once += r.once, sum->wave += r.wave, sum->again += r.again;
}

/* Sectors that come from DRAM. A sector that several waves read is read again behind as many others as the
 * waves between read, of `data` in all. */
static double from_dram(const Profile *p, Reads r, double wave, double data)
{
    if (r.again <= r.once) return r.once;
    double waves = r.wave > 0 ? fmax(1, r.once / r.wave) : 1,
           kept = extrapolate_kept(p, fmin(data, waves * wave) * SECTOR / p->l2_share);
    return r.once + (r.again - r.once) * (1 - kept);
}

/* Of the waits for what a block reads for the first time, those for DRAM, and those for what another block of
 * its SM has brought to L1. */
typedef struct {
    double all, dram, near;
} Waits;

/* dram: of `touched` sectors, those that come from DRAM. on_sm: of on_one_sm. */
static void add_waits(Waits *w, const BufferTraffic *b, double touched, double dram, double on_sm)
{
    const double far = touched > 0 ? fmin(1, dram / touched) : 1;
    w->all += b->waits;
    w->dram += b->waits * far;
    w->near += b->waits * (1 - far) * (1 - 1 / on_sm);
}

/* kept: of what a block reads again. The blocks of the first wave, a share `cold` of all, start together:
 * each waits for what one of them loads. */
static void settle_waits(const Waits *w, double cold, double kept, SimCounts *c)
{
    const double first = (double)c->leader_dram_waits,
                 later = fmax(0, (double)c->leader_far_waits - first);
    if (w->all <= 0) return;
    c->leader_dram_waits =
        whole(first * (cold + (1 - cold) * w->dram / w->all) + later * (1 - kept));
    c->leader_far_waits = whole(first * (1 - (1 - cold) * w->near / w->all) + later);
}

/* The share of what blocks read again that L2 has kept, of `wave` sectors that a wave reads. Where L2 has
 * halves, half of what one SM reads lies in both. Loops over tiles read again what they have just read:
 * between lies a part of what the block reads in all, without what the blocks before it have read. touched:
 * sectors that blocks read, each for itself. */
static double own_kept(const Profile *p, const SimCounts *c, double wave, double touched,
                       double again)
{
    const double share = 2 * p->l2_share / (1 + p->l2_share), all = wave * SECTOR / share,
                 aged = again > 0 ? fmin(1, (double)c->aged_sectors / again) : 0,
                 loads = (double)c->aged_loads / fmax(1, (double)c->aged_sectors),
                 each = fmax(0, touched - (double)c->near_sectors) / (double)c->blocks,
                 between = each > 0 ? fmin(1, loads / each) : 1;
    return (1 - aged) * extrapolate_kept(p, all) + aged * extrapolate_kept(p, all * between);
}

void extrapolate_traffic(const Profile *p, const BufferTraffic *buffers, int n, double resident,
                         SimCounts *c)
{
    double read = 0, written = 0, footprint = 0, wave_footprint = 0, dram = 0, sharing = 1,
           blocks = (double)c->blocks, writes = 0, misses = 0, lines = 0;
    for (int i = 0; i < n; i++) read += buffers[i].read, written += buffers[i].written;
    double read_scale = read > 0 ? (double)c->dram_read_sectors / read : 0,
           write_scale = written > 0 ? (double)c->dram_write_sectors / written : 0;
    double moved = share_of_room(buffers, n, write_scale);
    Reads all = {0}, *parts = memory_array((size_t)n + 1, 2 * sizeof *parts);
    double *on_sm = memory_array((size_t)n + 1, sizeof *on_sm);
    Waits waits = {0};
    if (resident > blocks) resident = blocks;
    for (int i = 0; i < n; i++) {
        const BufferTraffic *b = &buffers[i];
        double sectors = ceil(b->size / SECTOR), out = b->written * write_scale;
        if (out > 0 && out < sectors) out += (sectors - out) * moved;
        Reads *half = &parts[2 * i], sum = {0};
        half[0] = reads_of(b, c, resident, b->common_read * read_scale, b->common);
        half[1] =
            reads_of(b, c, resident, (b->read - b->common_read) * read_scale, sectors - b->common);
        add_reads(&sum, half[0]), add_reads(&sum, half[1]);
        add_reads(&all, sum);
        lines += b->atomics ? ceil(sectors / PAIR_SECTORS) : 0;
        Reads whole_buffer = reads_of(b, c, resident, sum.all, sectors);
        on_sm[i] = on_one_sm(p, sum.all / blocks * resident, whole_buffer.wave, resident);
        misses += sum.all / on_sm[i];
        writes += fmin(out, sectors);
        footprint += fmin(sum.once + out, sectors);
        wave_footprint += fmin(sum.wave + out / blocks * resident, sectors);
        if (out > sectors) sharing = fmax(sharing, out / sectors);
    }
    for (int i = 0; i < n; i++) {
        const Reads *half = &parts[2 * i];
        double of = from_dram(p, half[0], wave_footprint, footprint) +
                    from_dram(p, half[1], wave_footprint, footprint);
        add_waits(&waits, &buffers[i], half[0].all + half[1].all, of, on_sm[i]);
        dram += of;
    }
    free(on_sm);
    free(parts);
    double touched = (double)c->dram_read_sectors,
           past_l1 = (double)c->global_load_sectors - (double)c->l1_hit_sectors,
           kept = own_kept(p, c, wave_footprint, touched, past_l1 - touched);
    /* A copy of several buffers arrives as a whole, so that its waits are those of the launch's mean. */
    waits.all += (double)c->copy_waits;
    waits.dram += (double)c->copy_waits * (touched > 0 ? fmin(1, dram / touched) : 1);
    /* What a block reads again finds its data in L2 as far as those of a wave stay there. */
    if (past_l1 > touched) dram += (past_l1 - touched) * (1 - kept);
    c->dram_read_sectors = whole(dram + fills(c, writes, footprint, (double)p->l2_size));
    c->dram_write_sectors = whole(writes);
    /* One block of an SM asks L2 for what several of them read. */
    double asked = past_l1 * (all.all > 0 ? misses / all.all : 1);
    c->lone_sectors = whole((double)c->lone_sectors * asked / fmax(past_l1, 1));
    c->l1_hit_sectors = whole((double)c->global_load_sectors - asked);
    c->l2_load_sectors = asked > dram ? whole(asked - dram) : 0;
    c->global_atomic_hottest = whole((double)c->global_atomic_hottest * sharing);
    double turns = fmax((double)c->hottest_shared, turns_on_each(c, lines, resident));
    c->global_atomic_hottest = whole(fmax((double)c->global_atomic_hottest, turns));
    settle_waits(&waits, resident / blocks, kept, c);
}

void extrapolate_growth(const SimCounts *small, double growth, const uint32_t grid[3],
                        SimCounts *out)
{
    uint64_t values[COUNTS_FIELDS], blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    double each = growth * (double)small->blocks / (double)blocks;
    *out = *small;
    memcpy(out->grid, grid, sizeof out->grid);
    out->blocks = blocks;
    out->warps = small->warps / small->blocks * blocks;
    memcpy(values, (char *)out + COUNTS_FIRST, sizeof values);
    for (int k = 0; k < COUNTS_FIELDS; k++) values[k] = whole((double)values[k] * growth);
    memcpy((char *)out + COUNTS_FIRST, values, sizeof values);
    SimCounts was = *small;
    for (int k = 0; k < LARGEST; k++)
        *field(out, largest[k]) = whole((double)*field(&was, largest[k]) * each);
    out->global_atomic_hottest = whole((double)small->global_atomic_hottest * growth);
    out->heavy_insts = whole((double)small->heavy_insts * each);
    out->heavy_memory = whole((double)small->heavy_memory * each);
    out->heavy_memory_blocks =
        whole((double)small->heavy_memory_blocks * (double)blocks / (double)small->blocks);
    out->path_cycles = whole((double)small->path_cycles * (double)blocks / (double)small->blocks);
    out->heavy_blocks = whole((double)small->heavy_blocks * (double)blocks / (double)small->blocks);
}

void extrapolate_chain(SimCounts *c)
{
    uint64_t cycles = c->blocks * (WAITS_HOP + WAITS_LOOK);
    if (cycles > c->path_cycles) c->path_cycles = cycles;
}
