#include <cuda_fp16.h>
#include "a.h"
  #  include	<cub/cub.cuh>
#include "lib/common.h"
#include <loop/loop/a.h>
#include <math.h>
#include MACRO
#include "../secret.h"
#include <link.h>
#include "/etc/passwd"
#include <b.h> // two/b.h
#include_next <vector.h>
