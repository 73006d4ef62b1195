#!/usr/bin/env bash
# The source tree passes mk/lint. Its findings are printed as diagnostics.
set -u
cd "${QUERN_SOURCE:-.}" || exit 1
echo 1..1
if out=$(mk/lint 2>&1); then
  echo 'ok 1 - the tree is clean'
else
  sed 's/^/# /' <<<"$out"
  echo 'not ok 1 - the tree is clean'
fi
