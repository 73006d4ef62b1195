/* A dimension may take what the others leave. */
#include "eval/sim/coverage/box.h"

#include <string.h>

void box_open(Box *b, const GridParts *p, const uint32_t grid[3], const uint32_t block[3])
{
    int64_t rest = block[0], extent = grid[0];
    memset(b->low, 0, sizeof b->low);
    memset(b->high, 0, sizeof b->high);
    for (int k = p->n - 1; k >= 0; k--) {
        const int64_t layers = extent / p->stride[k], at = rest / p->stride[k];
        const int is_whole = at < layers;
        if (is_whole) b->low[k] = -at, b->high[k] = layers - 1 - at;
        extent = is_whole ? p->stride[k] : extent - layers * p->stride[k];
        rest -= at * p->stride[k];
    }
    for (int k = 1; k < 3; k++) {
        b->low[X_PARTS + k - 1] = -(int64_t)block[k];
        b->high[X_PARTS + k - 1] = (int64_t)grid[k] - 1 - block[k];
    }
}

/* The steps of number x along each part. */
static void divide(const GridParts *p, uint32_t x, int64_t at[X_PARTS])
{
    int64_t rest = x;
    memset(at, 0, X_PARTS * sizeof *at);
    for (int k = p->n - 1; k >= 0; k--) {
        at[k] = rest / p->stride[k];
        rest -= at[k] * p->stride[k];
    }
}

int box_steps(const Box *b, const GridParts *p, const uint32_t from[3], const uint32_t to[3],
              int64_t steps[BOX_DIMS])
{
    int64_t was[X_PARTS], now[X_PARTS];
    int inside = 1;
    divide(p, from[0], was);
    divide(p, to[0], now);
    for (int k = 0; k < X_PARTS; k++) steps[k] = now[k] - was[k];
    for (int k = 1; k < 3; k++) steps[X_PARTS + k - 1] = (int64_t)to[k] - from[k];
    for (int k = 0; k < BOX_DIMS; k++) inside &= steps[k] >= b->low[k] && steps[k] <= b->high[k];
    return inside;
}

int box_is_moving(const Box *b, const int64_t d[BOX_DIMS])
{
    for (int k = 0; k < BOX_DIMS; k++)
        if (d[k] && (b->low[k] || b->high[k])) return 1;
    return 0;
}

void box_pin(Box *b, int k)
{
    b->low[k] = b->high[k] = 0;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t r;
    if (!__builtin_mul_overflow(a, b, &r) && r < BOX_MOST && r > -BOX_MOST) return r;
    return (a < 0) == (b < 0) ? BOX_MOST : -BOX_MOST;
}

/* The room that is left for dimension k where the others take what they may. */
static void shrink(Box *b, const int64_t d[BOX_DIMS], int k, int64_t down, int64_t up)
{
    for (int i = 0; i < BOX_DIMS; i++) {
        if (i == k || !d[i]) continue;
        int64_t a = times(d[i], b->low[i]), c = times(d[i], b->high[i]);
        up -= a > c ? a : c;
        down += a > c ? c : a;
        if (up > BOX_MOST) up = BOX_MOST;
        if (down > BOX_MOST) down = BOX_MOST;
    }
    if (up < 0 || down < 0) {
        box_pin(b, k);
        return;
    }
    uint64_t step = d[k] < 0 ? 0 - (uint64_t)d[k] : (uint64_t)d[k];
    int64_t more = (int64_t)((uint64_t)up / step), less = (int64_t)((uint64_t)down / step);
    if (d[k] < 0) {
        int64_t swap = more;
        more = less;
        less = swap;
    }
    if (b->high[k] > more) b->high[k] = more;
    if (b->low[k] < -less) b->low[k] = -less;
}

void box_keep(Box *b, const int64_t d[BOX_DIMS], const int64_t range[2], int64_t low, int64_t high)
{
    int64_t up = high >= BOX_MOST ? BOX_MOST : high - range[1],
            down = low <= -BOX_MOST ? BOX_MOST : range[0] - low;
    for (int k = BOX_DIMS - 1; k >= 0; k--)
        if (d[k] && (b->low[k] || b->high[k])) shrink(b, d, k, down, up);
}

/* ---- periods ---- */

/* After how many steps of a dimension by `d` a quotient by `by` is what it was, and a whole number more. 0:
 * not within the dimension. A quotient may be one of a product by a number just above 1 / by. */
static int64_t period_of(uint64_t d, uint64_t by, int64_t size)
{
    uint64_t a = by, b = d;
    while (b) {
        uint64_t rest = a % b;
        a = b, b = rest;
    }
    const uint64_t exact = by / a, about = by / d + (by % d > 0);
    for (int i = 0; i < 2; i++) {
        const uint64_t n = i ? about : exact;
        if (n >= 2 && n <= (uint64_t)size / 2) return (int64_t)n;
    }
    return 0;
}

void box_note_periods(BoxPeriods *p, const int64_t d[BOX_DIMS], int64_t by)
{
    for (int k = 0; k < X_PARTS; k++) {
        const uint64_t step = d[k] < 0 ? 0 - (uint64_t)d[k] : (uint64_t)d[k];
        const int64_t n = step ? period_of(step, (uint64_t)by, p->size[k]) : 0;
        if (n * p->stride[k] > p->largest) p->largest = n * p->stride[k];
    }
}
