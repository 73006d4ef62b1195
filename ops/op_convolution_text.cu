/* Kernels of convolutions. */

//@ direct
    const int channel = i / @inner@ % @channels@, n = i / @outputs@;
    const int g = channel / @out@, o = channel % @out@;
    @type@ sum = 0;
    for (int c = 0; c < @in@; c++)

//@ taps: the taps first to last of a dimension that meet the input
        int first@d@ = 0, last@d@ = kernel@d@;
        if (low@d@ < 0) first@d@ = (dilation@d@ - 1 - low@d@) / dilation@d@;
        const int over@d@ = low@d@ + (kernel@d@ - 1) * dilation@d@ - in@d@ + 1;
        if (over@d@ > 0) last@d@ -= (over@d@ + dilation@d@ - 1) / dilation@d@;

//@ unrolled_tap
            if (i1 >= 0 && i1 < in1 && i2 >= 0 && i2 < in2)
                sum += (T)*taps * (T)from[plane + i1 * in2 + i2];
            taps++;
        }

//@ depthwise
    typedef @type@ T;
    const long long step = (long long)blockDim.x * gridDim.x;
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (; at < n; at += step) {
        const int i = at, row = i / out2, o2 = i - row * out2;
        const int flat = row / out1, o1 = row - flat * out1;
        const int entry = flat / channels, channel = flat - entry * channels;
        int own = channel, inputs = channels;
        if (multiplier != 1) own /= multiplier, inputs /= multiplier;
        const @weight_type@ *taps = @weight@ + channel * kernel1 * kernel2;
        const @x_type@ *from = @x@;
        const int plane = (entry * inputs + own) * in1 * in2;
        const int low1 = o1 * stride1 - pad1, low2 = o2 * stride2 - pad2;
        T sum = \

//@ classes
    const int r@d@ = rest % @n@;
    rest /= @n@;
    int F@d@ = 0;
    while (F@d@ < @step@ && (r@d@ + @padding@ - F@d@ * @dilation@) % @stride@) F@d@++;
    const int T@d@ = F@d@ < @step@ ? (@kernel@ - F@d@ + @less@) / @step@ : 0;
    const int Q@d@ = (@out@ - r@d@ + @less_stride@) / @stride@;
    const int shift@d@ = (r@d@ + @padding@ - F@d@ * @dilation@) / @stride@;

//@ slice_a
        for (int e = threadIdx.x; e < 16 * 16 * R; e += 256) {
            const int in = e % 16, at = e / 16, k = k0 + in, o = row0 + at;
            sa[in][at] = 0;
            if (k >= depth || o >= @out@) continue;

//@ slice_b
        for (int in = threadIdx.x / (16 * C); in < 16; in += 16 / C) {
            const int k = k0 + in;
            sb[in][at] = 0;
            if (k >= depth || column >= columns) continue;

//@ tiles
    constexpr int R = @rows_share@, C = @columns_share@;
    __shared__ @type@ sa[16][16 * R + 1], sb[16][16 * C + 1];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int column0 = blockIdx.x % @across@ * (16 * C);
    const int row0 = blockIdx.x / @across@ % @down@ * (16 * R);
    int rest = blockIdx.x / @tiles@;
    const int g = rest % @groups@;
    rest /= @groups@;

//@ sums
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++)
#pragma unroll
            for (int i = 0; i < R; i++)
#pragma unroll
                for (int j = 0; j < C; j++)
                    acc[i][j] += sa[k][ty + 16 * i] * sb[k][tx + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int to = column0 + tx + 16 * j;
        if (to >= columns) break;

//@ store
#pragma unroll
        for (int i = 0; i < R; i++) {
            const int o = row0 + ty + 16 * i;
            if (o >= @out@) break;
