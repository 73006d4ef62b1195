#include <math.h>
#include <stdint.h>

/* One output of the convolution: kernel 3, stride 1, no padding. */
static double convolve(const double *x, const double *weight, int64_t cin, int64_t d, int64_t z, int64_t y, int64_t w)
{
    double sum = 0;
    for (int64_t c = 0; c < cin; c++)
        for (int64_t i = 0; i < 27; i++) {
            int64_t dz = i / 9, dy = i / 3 % 3, dw = i % 3;
            sum += weight[c * 27 + i] * x[((c * d + z + dz) * d + y + dy) * d + w + dw];
        }
    return sum;
}

void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    int64_t batch = axis[0], cin = axis[1], cout = axis[2], d = axis[3], e = d - 2, volume = e * e * e;
    const double *weight = in[1], *bias = in[2], *gamma = in[3], *beta = in[4];
    for (int64_t b = 0; b < batch; b++) {
        const double *x = in[0] + b * cin * d * d * d;
        double *y = out[0] + b * cout * volume, mean = 0, var = 0, count = (double)(cout * volume);
        for (int64_t c = 0; c < cout; c++)
            for (int64_t p = 0; p < volume; p++)
                mean += y[c * volume + p] = bias[c] + convolve(x, weight + c * cin * 27, cin, d, p / (e * e), p / e % e, p % e);
        mean /= count;
        for (int64_t i = 0; i < cout * volume; i++) var += (y[i] - mean) * (y[i] - mean);
        var /= count;
        for (int64_t i = 0; i < cout * volume; i++) {
            double v = (y[i] - mean) / sqrt(var + 1e-5) * gamma[i / volume] + beta[i / volume];
            y[i] = fmin(fmax(fmin(v, 0.0), 0.0), 1.0);
        }
    }
}
