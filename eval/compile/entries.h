/* Kernels by their place in PTX. A name that a kernel shares with functions, such as `norm` of CUDA's
 * headers, is no name expression of NVRTC, and the kernel is an entry of the PTX all the same. */
#ifndef EVAL_COMPILE_ENTRIES_H
#define EVAL_COMPILE_ENTRIES_H

/* Is it an identifier with or without namespaces, and no instance of a template? */
int entry_is_plain(const char *name);
/* Is the text [a, end) the name b, whatever blanks they have? NVRTC repeats names with blanks of its own. */
int entry_same_name(const char *a, const char *end, const char *b);
/* The lowered name of the kernel that a plain name means. The caller frees it. NULL: PTX has no such entry,
 * or more than one. */
char *entry_find(const char *ptx, const char *name);

#endif
