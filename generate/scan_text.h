/* The text of kernels that scan rows. */
#ifndef GENERATE_SCAN_TEXT_H
#define GENERATE_SCAN_TEXT_H

#include "generate/writer.h"

/* The pass over a row that stores results, which need a scan of it. */
void scan_put(Writer *w);

#endif
