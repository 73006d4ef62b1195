#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names, on a real GPU: QUERN_TEST_DEVICE, cuda:0 by
# default. TAP on stdout.
# limit: 1200
. "$(dirname "$0")/../shell/verdicts.sh"
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
need_gpu "$DEVICE"
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache # the baselines are compiled once
check_verdicts 1 "$root"/tests/cheats/*.cu
done_testing
