//@ for t in 0..4096
//@ launch f<<<1, 1>>>(x, y, t)
