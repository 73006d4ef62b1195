#!/usr/bin/env bash
# The source tree passes mk/lint, and a test without TAP does not. A failure prints the findings. TAP on
# stdout.
. "$(dirname "$0")/tap.sh"
need git
diagnose() { sed 's/^/# /' "$tmp/out"; }
cd "$root" || exit 1
mk/lint >"$tmp/out" 2>&1; ok $? 'the tree is clean'
mkdir -p "$tmp/tree/tests" && cp -r mk "$tmp/tree" && cd "$tmp/tree" || exit 1
printf '%s\n' '/* A test. */' 'int main(void)' '{' '    SET' \
    '    return cmocka_run_group_tests(tests, 0, 0);' '}' >tests/test_a.c
! mk/lint --no-format >"$tmp/out" &&
    grep -q '^tests/test_a.c:5: runs cmocka tests without CM_OUTPUT_TAP' "$tmp/out"
ok $? 'a cmocka test without TAP is found'
sed -i 's/SET/cmocka_set_message_output(CM_OUTPUT_TAP);/' tests/test_a.c
mk/lint --no-format >"$tmp/out"; ok $? 'a cmocka test with TAP is no finding'
git init -q . && printf 'echo %s\n' "$(seq -s ' ' 60)" >wide.sh && printf 'x=%s\n' "$(seq -s '' 60)" >word.sh
git add .
! mk/lint --no-format >"$tmp/out" && [ "$(grep -c columns "$tmp/out")" = 1 ] &&
    grep -q '^wide.sh:1: .* columns, at most 110' "$tmp/out"
ok $? 'a line of a script that is too wide is found, a long word is not'
{ echo '/* A list.'; echo ' */'; seq -f 'int a%g;' 810; } >tests/long.c; git add .
! mk/lint --no-format >"$tmp/out" && grep -q '^tests/long.c:800: 812 lines, at most 800' "$tmp/out"
ok $? 'a file that is too long is found'
! mk/lint --no-format >"$tmp/out" &&
    grep -q '^tests/parted.h:3: .* parts the type Thing' "$tmp/out"
printf '%s\n' '/* A struct. */' 'struct A {' '    Thing' '        member; /* long */' '};' >tests/parted.h
git add .
! mk/lint --no-format >"$tmp/out" && grep -q "^tests/parted.h:3: .* parts the type Thing" "$tmp/out"
ok $? 'a type that is parted from its name is found'
git rm -qf wide.sh tests/long.c tests/parted.h
echo 0.2.0 >VERSION; echo 'version: 0.1.0' >CITATION.cff
! mk/lint --no-format >"$tmp/out" &&
    grep -q '^CITATION.cff:1: names version 0.1.0, and VERSION 0.2.0' "$tmp/out"
ok $? 'another version in CITATION.cff is found'
printf '%s\n' '/* A style. */' 'p { a: b' >p.css; printf '%s\n' '/* A script. */' 'f({;' >p.js; git add .
! mk/lint --no-format >"$tmp/out" && grep -q '^p.css:1: has a brace without its partner' "$tmp/out" &&
    { ! command -v node >/dev/null || grep -q '^p.js: SyntaxError' "$tmp/out"; }
ok $? 'a broken style sheet and a broken script are found'
done_testing
