/* Which values lie in memory where the analytic model decides. A row's fold that two kernels need is computed
 * by both, unless it is stored; which is faster depends on what else each of them reads. */
#ifndef GENERATE_REWRITE_SETTLE_H
#define GENERATE_REWRITE_SETTLE_H

#include "generate/first.h"

/* As generate_first. Values that the schedule does not mention, and that by default are computed where they
 * are needed, are stored one by one as long as the model's time of all kernels falls. genes: NULL: as
 * generate_first. */
int generate_settled(const Task *task, Genes *genes, Estimate *estimate, Generated *out,
                     Error *err);

#endif
