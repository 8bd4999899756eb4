# What the tests of `wfs serve` share, after lib.bash.

has_address() {
    [ -s "$OUT/address" ] || ! kill -0 "$SERVER" 2>/dev/null
}

# offer [FLAGS] SOURCE...: starts the server at a free port. Sets SERVER and URL.
offer() {
    OUT=$BATS_TEST_TMPDIR
    SERVER_LOG=$OUT/server.log
    : >"$OUT/address"
    "$WFS" serve --listen 127.0.0.1:0 "$@" >"$OUT/address" 2>"$SERVER_LOG" 3>&- &
    SERVER=$!
    await has_address
    URL=$(cat "$OUT/address")
    [[ $URL == http://127.0.0.1:* ]]
}

get() {
    curl --silent --show-error --fail-with-body "$@"
}

# The status of the answer to a request.
status_of() {
    curl --silent --output /dev/null --write-out '%{http_code}' "$@"
}

header() { # of the answer in $OUT/headers, by its name
    sed -n "s/^$1: \(.*\)\r$/\1/Ip" "$OUT/headers"
}
