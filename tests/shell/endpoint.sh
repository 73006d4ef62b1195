# Sourced by tests of stages with an endpoint. It sources tap.sh and starts the fake server (fake_llm.py),
# which logs its requests to ./log.
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
need python3 'the fake server needs python3'
python3 "$here/fake_llm.py" "$tmp/log" >port 2>server.err &
server=$!
at_exit+=('kill $server 2>/dev/null')
logs=(err server.err)
wait_for '[ -s port ]'
export BIN NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 OPENAI_BASE_URL=http://127.0.0.1:$(cat port)/v1 \
    OPENAI_API_KEY=sk-secret-0123456789abcdef
# The last check of such a test.
check_key() { ! grep -rlF sk-secret --exclude=log . ; ok $? 'the key is in no artifact, journal or message'; }
