/* Kernels that take windows apart into columns, and put them together. */

//@ unfold
    const long long index = blockIdx.x * 1024LL + threadIdx.x;
    if (index >= n) return;
    const long long ow = index % outw, oh = index / outw % outh, channel = index / outw / outh;
    const long long h0 = oh * strideh - padh, w0 = ow * stridew - padw;
    im += (channel * inh + h0) * inw + w0;
    col += (channel * kernelh * kernelw * outh + oh) * outw + ow;
    for (long long i = 0; i < kernelh; i++)
        for (long long j = 0; j < kernelw; j++) {
            const long long h = h0 + i * dilationh, w = w0 + j * dilationw;
            *col = (T)0.0f;
            if (h >= 0 && w >= 0 && h < inh && w < inw)
                *col = im[i * dilationh * inw + j * dilationw];
            col += outh * outw;
        }

//@ fold
    const long long at = blockIdx.x * 512LL + threadIdx.x;
    if (at >= n) return;
    const long long w = at % inw + padw, h = at / inw % inh + padh, channel = at / inw / inh;
    const long long extenth = (kernelh - 1) * dilationh + 1;
    const long long extentw = (kernelw - 1) * dilationw + 1;
    const long long endh = min(h / strideh + 1, outh), endw = min(w / stridew + 1, outw);
    const long long firsth = h < extenth ? 0 : (h - extenth) / strideh + 1;
    const long long firstw = w < extentw ? 0 : (w - extentw) / stridew + 1;
    A sum = 0;
    for (long long oh = firsth; oh < endh; oh++)
        for (long long ow = firstw; ow < endw; ow++) {
            long long i = h - oh * strideh, j = w - ow * stridew;
            if (i % dilationh || j % dilationw) continue;
            i /= dilationh, j /= dilationw;
            sum += (A)col[(((channel * kernelh + i) * kernelw + j) * outh + oh) * outw + ow];
        }
    y0[at] = (T)sum;
