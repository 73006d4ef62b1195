/* The mangled names of kernels, read from PTX: NVRTC tells them only when all is compiled. */
#ifndef EVAL_COMPILE_EARLY_NAMES_H
#define EVAL_COMPILE_EARLY_NAMES_H

/* For each name expression, such as foo<float, 256>, the one .entry whose unmangled name is its base,
 * foo. Returns 0 with a copy of each, or -1 when a name has none or several, or with more than 16
 * names. The caller frees what is set in both cases. */
int early_names(const char *ptx, int n, const char *const *names, char **lowered);

#endif
