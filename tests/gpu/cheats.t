#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names, on a real GPU: QUERN_TEST_DEVICE, cuda:0 by default.
# limit: 1200
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
case $DEVICE in cuda:*) [ -e /dev/nvidiactl ] || { echo '1..0 # SKIP no NVIDIA GPU here'; exit 0; } ;; esac
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet QUERN_CACHE=$TMP/cache # the baselines are compiled once
. tests/shell/verdicts.sh
check_verdicts 1 tests/cheats/*.cu
