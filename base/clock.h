/* Time. clock_seconds is monotonic and for durations only; nothing that is stored in an
 * artifact's payload may come from a clock, or equal runs would not be equal bytes. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

double clock_seconds(void);
double clock_unix(
    void); /* seconds since 1970, for people to read and to compare between processes */
void clock_sleep(double seconds); /* returns early on a signal */

#endif
