/* The scaling formulas of llama3 and YaRN, in double precision. */
#include "model/core/model_config.h"

#include <math.h>

/* Wavelengths above original/slow are multiplied by factor, wavelengths below original/fast are
 * kept, and the scale is interpolated linearly between. */
static double llama3(const RopeScaling *r, double inv)
{
    double wave = 2 * M_PI / inv;
    if (wave < (double)r->original / (double)r->fast) return inv;
    if (wave > (double)r->original / (double)r->slow) return inv / (double)r->factor;
    double s = (r->original / wave - (double)r->slow) / (double)(r->fast - r->slow);
    return (1 - s) * inv / (double)r->factor + s * inv;
}

/* The real-valued index whose frequency completes `turns` rotations within the original length. */
static double yarn_index(const ModelConfig *c, double turns)
{
    return c->head_dim * log(c->rope.original / (turns * 2 * M_PI)) /
           (2 * log((double)c->rope_theta));
}

/* Frequencies with an index below `low` are kept, above `high` divided by factor, and interpolated
 * linearly between. */
static double yarn(const ModelConfig *c, double inv, int i)
{
    double low = fmax(floor(yarn_index(c, (double)c->rope.fast)), 0);
    double high = fmin(ceil(yarn_index(c, (double)c->rope.slow)), c->head_dim - 1);
    if (low == high) high += 0.001;
    double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
    return inv / (double)c->rope.factor * ramp + inv * (1 - ramp);
}

void rope_frequencies(const ModelConfig *c, float *inv, float *scale)
{
    for (int i = 0; i < c->head_dim / 2; i++) {
        double x = 1.0 / pow((double)c->rope_theta, 2.0 * i / c->head_dim);
        inv[i] = (float)(c->rope.type == ROPE_LLAMA3 ? llama3(&c->rope, x)
                         : c->rope.type == ROPE_YARN ? yarn(c, x, i)
                                                     : x);
    }
    *scale = c->rope.type == ROPE_YARN ? c->rope.attention : 1;
}

float rope_attention_factor(float factor)
{
    return factor > 1 ? (float)(0.1 * log((double)factor) + 1) : 1;
}
