//@ launch relu<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows * cols)
