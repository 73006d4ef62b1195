/* The Makefile passes QUERN_VERSION from the file VERSION to this source alone. */
#include "base/version.h"

const char quern_version[] = QUERN_VERSION;
