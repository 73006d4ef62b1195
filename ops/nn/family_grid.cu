/* The kernel that samples images at the places of a grid. */

//@ begin
    typedef @type@ A;
    const long long index = blockIdx.x * 256LL + threadIdx.x;
    if (index >= n) return;
    const int w = index % out3, h = index / out3 % out2;
    const long long batch = index / out3 / out2;
    const long long at = @offset@LL + batch * @batch@LL + h * @line@LL + w * @column@LL;
