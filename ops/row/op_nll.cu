/* Kernels of the negative log likelihood. */

//@ reduce
    sum = op_block_reduce(sum, [](T p, T q) { return p + q; }, shared);
    weights = op_block_reduce(weights, [](T p, T q) { return p + q; }, shared);
    if (threadIdx.x) return;

//@ parts
    typedef @type@ T;
    __shared__ T shared[32];
    T sum = 0, weights = 0;
    for (int i = threadIdx.x; i < @parts@; i += 256) {
        sum += t@sums@[i];
        weights += t@weights@[i];
    }
