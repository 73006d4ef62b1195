/* Random numbers that repeat: xoshiro256** (Blackman, Vigna 2018) seeded by splitmix64.
 * A stream is named by (seed, stream): equal names give equal numbers on every machine. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t s[4];
} Random;

void random_init(Random *r, uint64_t seed, uint64_t stream);
void random_fill(Random *r, uint64_t *out, size_t n); /* as n calls of random_u64 */
uint64_t random_below(Random *r, uint64_t n);         /* uniform in [0, n), without bias; n >= 1 */
static inline uint64_t random_u64(Random *r)          /* inline: the state may stay in registers */
{
    uint64_t *s = r->s, x = s[1] * 5, out = (x << 7 | x >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return out;
}
/* [0, 1), 53 bits. Both halves are converted by themselves, which vectors can do; their sum is exact. */
static inline double random_unit(uint64_t x)
{
    double high = (double)(int32_t)(x >> 43) * 0x1p32,
           low = (double)(int32_t)((uint32_t)(x >> 11) ^ 0x80000000u) + 0x1p31;
    return (high + low) * 0x1p-53;
}
static inline double random_uniform(Random *r) /* random_unit of the next number */
{
    return random_unit(random_u64(r));
}
double random_normal(Random *r); /* mean 0, variance 1 (Box-Muller, one at a time) */
uint64_t random_hash(const void *data,
                     size_t len); /* FNV-1a 64, finished by splitmix: names to streams */

#endif
