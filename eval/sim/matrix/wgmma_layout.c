/* Tiles have 8 chunks by 1, 2, 4 or 8: without a swizzle or with one of 32, 64 or 128 bytes. A swizzle
 * exchanges the chunks of a row by the row's number in the tile. Both are bits of the address, from bit 4
 * and from bit 7 on, so that a tile is aligned to its size. */
#include "eval/sim/matrix/wgmma_layout.h"

enum { CHUNK = 16, TILE_ROWS = 8 };

static uint32_t bytes_at(uint64_t descriptor, int bit)
{
    return (uint32_t)(descriptor >> bit & 0x3fff) << 4;
}

WgmmaLayout wgmma_layout(uint64_t descriptor)
{
    static const uint8_t wide[] = {CHUNK, 128, 64, 32};
    return (WgmmaLayout){.start = bytes_at(descriptor, 0),
                         .leading = bytes_at(descriptor, 16),
                         .stride = bytes_at(descriptor, 32),
                         .wide = wide[descriptor >> 62],
                         .base = (int)(descriptor >> 49 & 7)};
}

uint32_t wgmma_place(const WgmmaLayout *l, int transposed, uint32_t a, uint32_t b)
{
    uint32_t at = l->start, chunks = l->wide / CHUNK;
    if (!transposed)
        at += a % TILE_ROWS * l->wide + a / TILE_ROWS * l->stride +
              b * (chunks > 1 ? CHUNK : l->leading);
    else if (chunks > 1)
        at += a % chunks * CHUNK + a / chunks * l->leading + b % TILE_ROWS * l->wide +
              b / TILE_ROWS * l->stride;
    else
        at += a * l->stride + b % TILE_ROWS * CHUNK + b / TILE_ROWS * l->leading;
    return at ^ (at >> 3 & (l->wide - CHUNK));
}
