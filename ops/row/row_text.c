/* Lists of operands. A name that does not fit is dropped: the kernel then does not compile. */
#include "ops/row/row_text.h"

#include <stdio.h>
#include <string.h>

void row_operand_named(RowOperands *o, const char *name)
{
    size_t n = strlen(name), len = strlen(o->text);
    for (const char *at = o->text; n && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == n && !memcmp(at, name, n)) return;
        at += word;
    }
    if (n && len + n + 2 <= sizeof o->text)
        snprintf(o->text + len, sizeof o->text - len, "%s%s", len ? " " : "", name);
}

void row_operand(RowOperands *o, char kind, int index)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, index);
    row_operand_named(o, name);
}
