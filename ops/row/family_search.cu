/* The kernel that finds places in sorted rows. */

//@ search
    typedef @type@ T;
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const long long first = i / row * bounds;
    const @stored@ *all = @all@;
    const T v = (T)(@value@)[i];
    long long from = first, to = first + bounds;
    while (from < to) {
        const long long at = from + ((to - from) >> 1);
        if (!((T)all[at] @compare@ v))
            from = at + 1;
        else
            to = at;
    }
    y0[i] = from - first;
