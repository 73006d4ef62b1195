/* xoshiro256** and the distributions on top of it. */
#include "base/random.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void random_init(Random *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = stream, y = seed ^ splitmix(&x);
    for (int i = 0; i < 4; i++) r->s[i] = splitmix(&y);
}

void random_fill(Random *r, uint64_t *out, size_t n)
{
    Random own = *r; /* it stays in registers */
    for (size_t i = 0; i < n; i++) out[i] = random_u64(&own);
    *r = own;
}

uint64_t random_below(Random *r, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
    do x = random_u64(r);
    while (x >= limit);
    return x % n;
}

double random_normal(Random *r)
{
    double u = 1.0 - random_uniform(r), v = random_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t random_hash(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return splitmix(&h);
}
