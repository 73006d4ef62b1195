#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names. TAP on stdout.
# limit: 600
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
check_verdicts 2 "$root"/tests/cheats/*.cu
done_testing
