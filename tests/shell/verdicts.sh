# For eval.t and both cheats.t: kernels that say in their first lines what verdict they expect.
#   // task: NAME                 // expect: OUTCOME [CHEAT]  (several, with " | " between them, where luck decides)
#   // most: SCORE that an `ok` may reach
#   // says: TEXT that the message holds    // never: TEXT that it does not    // line: N
# A field may differ by device: "// expect sim: ..." and "// expect cuda: ..." come before "// expect: ...".
DEVICE=${DEVICE:-sim:h100}

# The fields of one kernel, as variables of the caller: task expect most says never line
read_fields() { # FILE
    local text name own=" ${DEVICE%%:*}:"
    task= expect= most= says= never= line=
    while IFS= read -r text && [[ $text == //* ]]; do
        for name in task expect most says never line; do
            case $text in
                "// $name$own "*) printf -v "$name" %s "${text#*: }" ;;
                "// $name: "*) [ -n "${!name}" ] || printf -v "$name" %s "${text#*: }" ;;
            esac
        done
    done <"$1"
}

json_field() { # NAME: of the JSON line on stdin, a text or a number
    sed -E "s/.*\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|([-0-9.e+]+)).*/\2\4/"
}

json_value() { # NAME JSON VARIABLE: the same without a process; empty when there is none
    local pattern="\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|[-0-9.e+]+)"
    printf -v "$3" %s ""
    [[ $2 =~ $pattern ]] && printf -v "$3" %s "${BASH_REMATCH[2]:-${BASH_REMATCH[1]#\"\"}}"
}

# The test line of one kernel: is the verdict what it expects? The score too, where there is one.
say_verdict() { # N FILE JSON ERRORS [PROBLEM]
    local n=$1 file=$2 json=$3 problem=${5-} name task expect most says never line got cheat message score at
    name=${file##*/} name=${name%.cu}
    read_fields "$file"
    json_value outcome "$json" got
    json_value cheat "$json" cheat
    json_value message "$json" message
    json_value line "$json" at
    message=${message//'\"'/'"'}
    got=$got${cheat:+ $cheat}
    [ "$got" != ok ] || { json_value score "$json" score && printf -v score %.3f "$score"; }
    case " | $expect | " in *" | $got | "*) ;; *) problem="verdict $got, expected $expect${problem:+; $problem}" ;; esac
    [ -z "${score-}" ] || [ -z "$most" ] || awk "BEGIN { exit !($score <= $most) }" || problem="${problem:+$problem; }score $score, expected at most $most"
    [ -z "$says" ] || [[ $message == *"$says"* ]] || problem="${problem:+$problem; }the message does not say '$says'"
    [ -z "$never" ] || [[ $message != *"$never"* ]] || problem="${problem:+$problem; }the message says '$never'"
    [ -z "$line" ] || [ "$at" = "$line" ] || problem="${problem:+$problem; }line $at, expected $line"
    if [ -z "$problem" ]; then
        echo "ok $n - $name: $got${score:+, score $score}"
    else
        echo "not ok $n - $name: $expect"
        echo "# $problem"
        echo "# message: $message"
        sed 's/^/# /' "$4"
    fi
}

# Evaluate one kernel in a process of its own, whose exit status counts too.
check_verdict() { # N FILE
    local status=0 json wanted=1 task expect most says never line
    read_fields "$2"
    json=$("$BIN/quern-eval" --task "$task" --device "$DEVICE" --json "$2" 2>"$TMP/err") || status=$?
    [ "$(json_field outcome <<<"$json")" != ok ] || wanted=0
    [ "$status" = "$wanted" ] && wanted= || wanted="exit status $status, expected $wanted"
    say_verdict "$1" "$2" "$json" "$TMP/err" "$wanted"
}

# A whole list, a process a task, so many at a time: in a mixed order, so that hostile kernels come before honest ones. The
# lines come in the list's order.
check_verdicts() { # AT_A_TIME FILES...
    local workers=$1 w i k one tasks task expect most says never line
    shift
    local files=("$@") task_of=() order mine paths jsons
    echo "1..${#files[@]}"
    for i in "${!files[@]}"; do read_fields "${files[i]}"; task_of[i]=$task; done
    readarray -t order < <(printf '%s\n' "${!files[@]}" | shuf --random-source=<(yes mixed))
    tasks=$(printf '%s\n' "${task_of[@]}" | sort -u)
    for ((w = 0; w < workers; w++)); do
        for one in $tasks; do
            mine=()
            for i in "${order[@]}"; do ((i % workers != w)) || [ "${task_of[i]}" != "$one" ] || mine+=("$i"); done
            [ ${#mine[@]} -gt 0 ] || continue
            paths=()
            for i in "${mine[@]}"; do paths+=("${files[i]}"); done
            readarray -t jsons < <("$BIN/quern-eval" --task "$one" --device "$DEVICE" --json "${paths[@]}" 2>"$TMP/err.$w")
            for k in "${!mine[@]}"; do say_verdict $((mine[k] + 1)) "${files[mine[k]]}" "${jsons[k]-}" "$TMP/err.$w" >"$TMP/line.${mine[k]}"; done
        done &
    done
    wait
    for i in "${!files[@]}"; do cat "$TMP/line.$i"; done
}
