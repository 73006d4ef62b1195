/* A 3-D convolution with bias, group normalisation with one group, min(., 0), clamp to [0, 1]. */
#include <math.h>
#include <stdint.h>

/* One channel of the convolution (kernel 3, stride 1, no padding) into y[e][e][e], and its sum. */
static double convolve(const double *x, const double *weight, double bias, int64_t cin, int64_t d, double *y)
{
    int64_t e = d - 2;
    double sum = 0;
    for (int64_t row = 0; row < e * e; row++) {
        double *to = y + row * e;
        for (int64_t w = 0; w < e; w++) to[w] = bias;
        for (int64_t i = 0; i < cin * 27; i++) {
            int64_t c = i / 27, dz = i / 9 % 3, dy = i / 3 % 3, dw = i % 3;
            const double *from = x + ((c * d + row / e + dz) * d + row % e + dy) * d + dw;
            for (int64_t w = 0; w < e; w++) to[w] += weight[i] * from[w];
        }
        for (int64_t w = 0; w < e; w++) sum += to[w];
    }
    return sum;
}

static void batch_entry(int64_t cin, int64_t cout, int64_t d, const double *x, const double *const *in, double *y)
{
    int64_t volume = (d - 2) * (d - 2) * (d - 2), count = cout * volume;
    const double *weight = in[1], *bias = in[2], *gamma = in[3], *beta = in[4];
    double mean = 0, var = 0;
    for (int64_t c = 0; c < cout; c++) mean += convolve(x, weight + c * cin * 27, bias[c], cin, d, y + c * volume);
    mean /= (double)count;
    for (int64_t i = 0; i < count; i++) var += (y[i] - mean) * (y[i] - mean);
    var /= (double)count;
    for (int64_t i = 0; i < count; i++) {
        double v = (y[i] - mean) / sqrt(var + 1e-5) * gamma[i / volume] + beta[i / volume];
        y[i] = fmin(fmax(fmin(v, 0.0), 0.0), 1.0);
    }
}

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t batch = axis[0], cin = axis[1], cout = axis[2], d = axis[3], volume = (d - 2) * (d - 2) * (d - 2);
#pragma omp parallel for if (batch * cin * cout * volume > 1 << 20)
    for (int64_t b = 0; b < batch; b++)
        batch_entry(cin, cout, d, in[0] + b * cin * d * d * d, in, out[0] + b * cout * volume);
}
