/* Time. clock_seconds is monotonic and for durations only. No value of a clock goes into an artifact's
 * payload, since equal runs must give equal bytes. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

double clock_seconds(void);
double clock_unix(
    void); /* seconds since 1970, for people to read and to compare between processes */
void clock_sleep(double seconds); /* returns early on a signal */

#endif
