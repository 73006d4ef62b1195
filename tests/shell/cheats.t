#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names.
# limit: 600
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet QUERN_CACHE=$TMP/cache # the baselines are compiled once
. tests/shell/verdicts.sh
check_verdicts 2 tests/cheats/*.cu
