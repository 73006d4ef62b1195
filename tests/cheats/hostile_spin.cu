// Loops for ever, at full power.
// task: matmul
// expect: timeout
//@ launch matmul<<<1024, 256>>>(a, c)
extern "C" __global__ void matmul(const float *a, float *c)
{
    float v[8] = {a[0], a[1], 1, 2, 3, 4, 5, 6};
    for (unsigned i = 1; i; i |= 1)
        for (int k = 0; k < 8; k++) v[k] = fmaf(v[k], v[(k + 1) % 8], 1e-3f);
    c[0] = v[0];
}
