/* What a program's exit status means, the same in every program. docs/errors.md has the table. */
#ifndef BASE_EXIT_STATUS_H
#define BASE_EXIT_STATUS_H

enum {
    EXIT_STATUS_OK = 0,
    EXIT_STATUS_FAILED = 1, /* the work failed: a candidate, an input's content, a stage */
    EXIT_STATUS_USAGE = 2,  /* the command is wrong: a flag, a name, a file that does not exist */
    EXIT_STATUS_SYSTEM =
        3,                /* the system failed: a disk, memory, a device, a server, the compiler */
    EXIT_STATUS_SICK = 4, /* the device must leave service; a new start does not help */
    EXIT_STATUS_CANNOT_RUN = 126, /* as in a shell: the command of quern-fleet cannot be run, */
    EXIT_STATUS_NO_COMMAND = 127, /* or is not there */
    EXIT_STATUS_SIGNAL = 128      /* plus the number of the signal that stopped it */
};

#endif
