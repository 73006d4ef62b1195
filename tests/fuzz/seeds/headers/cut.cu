#include <common.h>
#define MACRO <lib/common.h>
#include "loop/../vector.h"
#include <./b.h>
#include <vector.h