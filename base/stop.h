/* Ctrl-C and SIGTERM. The first sets a flag that loops look at (finish or hand back what is in
 * work, keep the journal, exit 128+n); the second ends the process at once. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

void stop_install(void);  /* SIGINT, SIGTERM, SIGHUP; also ignores SIGPIPE and SIGXFSZ */
int stop_requested(void); /* the signal's number, or 0 */
int stop_fd(void);        /* becomes readable on the first signal: for poll */

#endif
