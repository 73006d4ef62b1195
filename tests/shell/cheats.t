#!/bin/bash
# Every kernel of tests/cheats gets the verdict that it names.
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet
. tests/shell/verdicts.sh

files=(tests/cheats/*.cu)
echo "1..${#files[@]}"
n=0
for file in "${files[@]}"; do check_verdict $((++n)) "$file"; done
