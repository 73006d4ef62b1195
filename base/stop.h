/* Ctrl-C and SIGTERM. The first signal sets a flag that loops check: they finish or hand back the
 * current work, keep the journal, and exit with 128+n. The second ends the process at once. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

void stop_install(
    void); /* SIGINT, SIGTERM, SIGHUP, and the time $QUERN_DEADLINE; also ignores SIGPIPE and SIGXFSZ */
int stop_requested(void); /* the signal's number, or 0 */
int stop_fd(void);        /* becomes readable on the first signal: for poll */

#endif
