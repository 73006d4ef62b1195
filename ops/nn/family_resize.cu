/* Weights of cubic interpolation. */

//@ weights
#ifndef OP_RESIZE
#define OP_RESIZE
template <typename T> __device__ T op_near(T x)
{
    const T a = -0.75;
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename T> __device__ T op_far(T x)
{
    const T a = -0.75;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
#endif
