/* The input is the JSON of an exported program, as a .pt2 archive holds it: read, sizes pinned,
 * constraints chosen, lines written and checked. */
#include <stdlib.h>

#include "tasks/import/lines.h"
#include "tasks/import/pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Program p;
    Lines l;
    Error err;
    char *constraint[PINS_MAX_CONSTRAINTS];
    int n = 0;
    if (program_read((const char *)data, size, NULL, 0, &p, &err)) return 0;
    if (!pins_find(&p, &err) && !lines_write(&p, &l, &err)) {
        lines_check(&p, &l, &err);
        pins_constraints(&p, constraint, &n);
        lines_release(&l);
    }
    while (n) free(constraint[--n]);
    program_release(&p);
    return 0;
}
