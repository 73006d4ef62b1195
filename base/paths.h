/* Where Quern's own files are: tasks, configurations, Make rules. Nothing is known from the build: a
 * program finds them from the place that it runs in, so a built or installed tree can be moved. */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

#include <stddef.h>

#include "base/error.h"

/* The folder that holds tasks/, configs/ and mk/:
 *   what the file `root` in the build folder says, relative to that folder: the build folder is
 *   one or two levels above the program (build/bin, build/test/MODULE);
 *   else PREFIX/share/quern for a program in PREFIX/libexec/quern/bin or PREFIX/bin.
 * ERROR_NOT_FOUND if none of these is there. */
int paths_root(char *out, size_t size, Error *err);

/* "ROOT/relative". The caller frees it. NULL: there is no root. */
char *paths_in_root(const char *relative, Error *err);

#endif
