#!/usr/bin/env bash
# The source tree passes mk/lint. A failure prints its findings. TAP on stdout.
. "$(dirname "$0")/tap.sh"
diagnose() { sed 's/^/# /' "$tmp/out"; }
cd "$root" || exit 1
mk/lint >"$tmp/out" 2>&1; ok $? 'the tree is clean'
done_testing
