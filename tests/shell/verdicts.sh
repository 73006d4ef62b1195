# For eval.t and cheats.t: kernels that say in their first lines what verdict they expect.
#   // task: NAME          // expect: OUTCOME [CHEAT]
#   // says: TEXT that the message holds    // never: TEXT that it does not    // line: N

field() { # FILE NAME
    sed -n "s|^// $2: ||p" "$1" | head -1
}

json_field() { # NAME: of the JSON line on stdin, a text or a number
    sed -E "s/.*\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|([-0-9.e+]+)).*/\2\4/"
}

# Evaluate one kernel; print its test line.
check_verdict() { # N FILE
    local n=$1 file=$2 name want says never line json status got cheat message
    name=$(basename "$file" .cu)
    want=$(field "$file" expect)
    says=$(field "$file" says) never=$(field "$file" never) line=$(field "$file" line)
    status=0
    json=$("$BIN/quern-eval" --task "$(field "$file" task)" --device sim:h100 --json "$file" 2>"$TMP/err") || status=$?
    got=$(json_field outcome <<<"$json")
    cheat=$(json_field cheat <<<"$json")
    message=$(json_field message <<<"$json" | sed 's/\\"/"/g')
    local expected_status=1 problem=
    [ "$want" = ok ] && expected_status=0
    [ "${got}${cheat:+ $cheat}" = "$want" ] || problem="verdict $got $cheat, expected $want"
    [ "$status" = "$expected_status" ] || problem="${problem:+$problem; }exit status $status, expected $expected_status"
    [ -z "$says" ] || grep -qF -- "$says" <<<"$message" || problem="${problem:+$problem; }the message does not say '$says'"
    [ -z "$never" ] || ! grep -qF -- "$never" <<<"$message" || problem="${problem:+$problem; }the message says '$never'"
    [ -z "$line" ] || [ "$(json_field line <<<"$json")" = "$line" ] || problem="${problem:+$problem; }line $(json_field line <<<"$json"), expected $line"
    if [ -z "$problem" ]; then
        echo "ok $n - $name: $want"
    else
        echo "not ok $n - $name: $want"
        echo "# $problem"
        echo "# message: $message"
        sed 's/^/# /' "$TMP/err"
    fi
}
