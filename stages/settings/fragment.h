/* A reader of settings files (configs/NAME.mk). They are Make fragments of a small part of Make's
 * language: NAME = VALUE, NAME := VALUE, NAME ?= VALUE, include FILE..., comments, a backslash at
 * a line's end. In a value "$$" is a dollar and "\#" a number sign; blanks at its ends do not
 * count. Everything else is refused with file and line: a file of settings runs nothing. */
#ifndef STAGES_SETTINGS_FRAGMENT_H
#define STAGES_SETTINGS_FRAGMENT_H

#include "base/error.h"

typedef struct {
    const char *name, *value;
    int weak;          /* NAME ?= VALUE: for a name that this file has not set yet */
    const char *where; /* "configs/smoke.mk:4" */
} FragmentLine;

typedef int FragmentSet(void *ctx, const FragmentLine *line, Error *err);

/* Call set for every assignment, in order, those of included files in their place. An included
 * file is looked for in the current folder, beside the file that includes it, and in share. */
int fragment_read(const char *path, const char *share, FragmentSet *set, void *ctx, Error *err);

/* Where a file of settings is: path as it is, else below share. Allocated; NULL: in neither. */
char *fragment_find(const char *path, const char *beside, const char *share);

#endif
