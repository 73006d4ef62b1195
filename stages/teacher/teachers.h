/* The list of teachers of stage 1: names by comma, and files of endpoints.
 *
 * "file:PATH" is a JSON file {"teachers": [ENTRY, ...]}. An entry is a name, as in the list, or an
 * object: "api" ("openai" or "anthropic") and "model"; and where they differ from the defaults
 * "name" (of the teacher, in its samples), "url", "key" (the variable of the environment that holds
 * the key), "trials", "keep", "tokens" (of an answer), "concurrency" and "price", an object with
 * "input" and "output": dollars for a million tokens. Other fields are refused. */
#ifndef STAGES_TEACHER_TEACHERS_H
#define STAGES_TEACHER_TEACHERS_H

#include "stages/teacher/teacher.h"

enum { TEACHERS_MAX = 64 };

typedef struct {
    Teacher items[TEACHERS_MAX];
    int n;
    char **texts; /* what the items point to */
    int n_texts;
} Teachers;

/* Reads a list. Every teacher has the settings of `common` where its entry has no other. Two of one
 * name are an error. The caller releases *out in any case. */
int teachers_read(const char *list, const Teacher *common, Teachers *out, Error *err);
void teachers_release(Teachers *t);

#endif
