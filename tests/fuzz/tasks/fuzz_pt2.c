/* The input is a .pt2 archive: the archive and the program in it. */
#include <stdlib.h>

#include "tasks/import/archive.h"
#include "tasks/import/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Archive a;
    Program p;
    Error err;
    if (archive_read_bytes(data, size, "input", &a, &err)) return 0;
    program_read(a.program.data, a.program.len, a.notes.len ? a.notes.data : NULL, a.notes.len, &p,
                 &err);
    program_release(&p);
    archive_release(&a);
    return 0;
}
