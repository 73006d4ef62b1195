#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names, on a real GPU: QUERN_TEST_DEVICE, cuda:0 by default.
# limit: 1200
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet QUERN_CACHE=$TMP/cache # the baselines are compiled once
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
. tests/shell/verdicts.sh
check_verdicts 1 tests/cheats/*.cu
