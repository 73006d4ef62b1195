/* The limits of a queue and their defaults. */
#include "queue/limits.h"

#include <string.h>

#include "base/environment.h"

int queue_limits_read(const char *url, QueueLimits *out, Error *err)
{
    static const double week_s = 7 * 24 * 3600;
    *out = (QueueLimits){30, 60, 10000, strncmp(url, "unix:", 5) ? week_s : 0};
    const EnvironmentNumber table[] = {{"lease", 0.05, 3600, &out->lease_s},
                                       {"retry", 0.001, 86400, &out->retry_s},
                                       {"jobs", 1, 1e9, &out->jobs},
                                       {"results", 0, 1e9, &out->results_s}};
    return environment_numbers("QUERN_QUEUE", table, sizeof table / sizeof *table, err);
}
