/* Conversions of pairs of 8-bit floats. E4M3 has no infinity and one NaN of each sign, E5M2 is a half
 * without its low byte. A value beyond the largest finite one becomes that one. */
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/half.h"

typedef struct {
    int fraction, lowest; /* bits; the exponent of the smallest normal number */
    double top;
    uint8_t top_bits, nan_bits;
} Format;

static const Format formats[] = {{3, -6, 448, 0x7e, 0x7f}, {2, -14, 57344, 0x7b, 0x7f}};

static uint32_t narrow(double v, const Format *f, int relu)
{
    int e;
    if (v != v) return f->nan_bits;
    if (relu && v <= 0) v = 0;
    uint32_t sign = signbit(v) ? 0x80 : 0;
    v = fabs(v);
    if (v >= f->top) return sign | f->top_bits;
    if (v == 0) return sign;
    frexp(v, &e);
    if (--e < f->lowest) e = f->lowest;
    double steps = rint(ldexp(v, f->fraction - e)); /* ties to even */
    return sign |
           (((uint32_t)(e - f->lowest) << f->fraction) + (uint32_t)steps); /* carries into it */
}

static uint32_t widen(uint32_t v, int type)
{
    uint32_t sign = (v & 0x80) << 8, rest = v & 0x7f;
    if (type == T_E5M2) return (rest & 0x7f) > 0x7c ? 0x7fff : v << 8;
    if (rest == 0x7f) return 0x7fff;
    double m = rest < 8 ? ldexp(rest, -9) : ldexp(8 + (rest & 7), (int)(rest >> 3) - 10);
    return sign | f16_narrow((float)m);
}

const Inst *h_fp8_narrow(Warp *w, const Inst *in)
{
    const Format *f = &formats[in->k0 - T_E4M3];
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b);
    uint32_t *d = row32(w, in->d);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m), floats = in->k1 == T_F32;
        double hi = floats ? (double)as_float(a[i]) : (double)f16_widen(a[i] >> 16),
               lo = floats ? (double)as_float(b[i]) : (double)f16_widen(a[i] & 0xffff);
        d[i] = narrow(hi, f, in->k3 & CVT_RELU) << 8 | narrow(lo, f, in->k3 & CVT_RELU);
    }
    return in + 1;
}

const Inst *h_fp8_widen(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a);
    uint32_t *d = row32(w, in->d);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t lo = widen(a[i] & 255, in->k0), hi = widen(a[i] >> 8 & 255, in->k0);
        if (in->k3 & CVT_RELU) { /* NaN stays */
            lo = lo == 0x7fff ? lo : lo & 0x8000 ? 0 : lo;
            hi = hi == 0x7fff ? hi : hi & 0x8000 ? 0 : hi;
        }
        d[i] = lo | hi << 16;
    }
    return in + 1;
}
