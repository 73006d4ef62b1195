# Sourced by tests of stages with an endpoint. Enters a new folder and starts the fake server
# (fake_llm.py), which logs its requests to ./log. TAP on stdout.
root=${QUERN_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
BIN=$(cd "${QUERN_BUILD:-$root/build}/bin" && pwd)
command -v python3 >/dev/null || { echo '1..0 # SKIP the fake server needs python3'; exit 0; }
tmp=$(mktemp -d)
cd "$tmp" || exit 1
python3 "$root/tests/shell/fake_llm.py" "$tmp/log" >port 2>server.err &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
wait_for() { local end=$((SECONDS + 60)); until eval "$1"; do [ $SECONDS -lt $end ] || return 1; sleep 0.02; done; }
wait_for '[ -s port ]'
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 OPENAI_BASE_URL=http://127.0.0.1:$(cat port)/v1 OPENAI_API_KEY=sk-secret-0123456789abcdef
unset QUERN_REDIS
export BIN
n=0 failed=0
ok() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        tail -n 12 err server.err | sed 's/^/# /'
        failed=1
    fi
}
done_testing() {
    ! grep -rlF sk-secret --exclude=log . ; ok $? 'the key is in no artifact, journal or message'
    echo "1..$n"
    exit $failed
}
digest() { "$BIN/quern-artifact" validate "$1" 2>>err | sed 's/.*payload //'; }
