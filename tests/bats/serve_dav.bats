# `wfs serve` by WebDAV: what clients ask before they mount, listings, and refusals.

load lib
load serve.bash

setup_file() {
    load lib
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_FILE_TMPDIR/tiny-llama"
}

setup() {
    need_serve
    need_numpy
    need curl
    MODEL=$BATS_FILE_TMPDIR/tiny-llama
    OUT=$BATS_TEST_TMPDIR
    SERVER=
}

teardown() {
    [ -z "$SERVER" ] || kill "$SERVER"
}

# find DEPTH PATH [FLAGS]: the properties of a resource, a line each (dav.py).
find() {
    get --path-as-is --request PROPFIND --header "Depth: $1" "${@:3}" "$URL/$2" >"$OUT/multistatus" && "$PYTHON" "$HERE/dav.py" <"$OUT/multistatus"
}

# The values of one property in lines of find.
values() {
    awk -F '\t' -v name="$1" '$3 == name && $2 == 200 { print $1 "\t" $4 }'
}

# The status of a PROPFIND.
found_status() { # PATH [FLAGS]
    status_of --path-as-is --request PROPFIND "${@:2}" "$URL/$1"
}

@test "OPTIONS names class 1, and what writes is refused" {
    offer "acme/Tiny=$MODEL"
    for path in "" acme/ acme/Tiny/ acme/Tiny/config.json acme/Tiny/none; do
        get --request OPTIONS --dump-header "$OUT/headers" "$URL/$path"
        [ "$(header DAV)" = 1 ]
        [ "$(header Allow)" = "OPTIONS, GET, HEAD, PROPFIND" ]
        for method in PUT DELETE MKCOL COPY MOVE PROPPATCH LOCK UNLOCK POST; do
            [ "$(status_of --request $method --dump-header "$OUT/headers" "$URL/$path")" = 405 ]
            [ "$(header Allow)" = "OPTIONS, GET, HEAD, PROPFIND" ]
        done
    done
    for path in api/models view/acme/Tiny acme/Tiny/resolve/main/config.json v2/acme/tiny/tags/list; do
        [ "$(found_status "$path" --header 'Depth: 0')" = 405 ]
    done
}

@test "a listing has what the index has, with the sizes and tags of the files, and computes none" {
    offer "acme/Tiny=$MODEL" "other/Model=$MODEL"
    [ "$(find 1 "" | values resourcetype)" = "$(printf '%s\tcollection\n' / /acme/ /other/)" ]
    [ "$(find 0 "" | values resourcetype)" = "$(printf '/\tcollection')" ]
    diff <(find 1 acme | values resourcetype | cut -f 1 | tail -n +2) <(get "$URL/acme/" | grep -o 'href="[^".]*/"' | sed 's|href="\(.*\)"|/acme/\1|')
    find 1 acme/Tiny-GGUF >"$OUT/list"
    same eval 'values getcontentlength <"$OUT/list" | cut -f 1 | sort' == eval '"$WFS" ls "$MODEL" gguf | sed -n "s|^model-|/acme/Tiny-GGUF/Tiny-|p" | sort'
    find 1 acme/Tiny-MLX-4bit/ >"$OUT/list"
    get "$URL/metrics" | grep -qx "wfs_computed_bytes_total 0"
    while IFS=$'\t' read -r path size; do
        get "$URL$path" --dump-header "$OUT/headers" >"$OUT/file"
        [ "$size" -eq "$(stat -c %s "$OUT/file")" ]
        for pair in getetag=ETag getlastmodified=Last-Modified getcontenttype=Content-Type; do
            [ "$(values "${pair%=*}" <"$OUT/list" | grep -F "$path"$'\t' | cut -f 2)" = "$(header "${pair#*=}")" ]
        done
    done < <(values getcontentlength <"$OUT/list")
    diff <(find 0 acme/Tiny-MLX-4bit/model.safetensors) <(grep -F /model.safetensors$'\t' "$OUT/list")
    diff <(find infinity acme/Tiny-MLX-4bit/model.safetensors) <(grep -F /model.safetensors$'\t' "$OUT/list") # nothing is below it
    [ -n "$(find 1 acme/Tiny-MLX-4bit-g32/ | values getetag)" ] # found by its name
}

@test "a body chooses all properties, names or some, and unknown ones are not found" {
    offer "acme/Tiny=$MODEL"
    all=$(find 0 acme/Tiny/config.json)
    [ "$(find 0 acme/Tiny/config.json --data '<propfind xmlns="DAV:"><allprop/></propfind>')" = "$all" ]
    [ "$(find 0 acme/Tiny/config.json --data '<propfind xmlns="DAV:"><propname/></propfind>')" = "$(cut -f 1-3 <<<"$all" | sed 's/$/\t/')" ]
    some='<?xml version="1.0"?><D:propfind xmlns:D="DAV:"><D:prop><D:getcontentlength/><D:supportedlock/><x xmlns="urn:a&amp;&lt;b"/></D:prop></D:propfind>'
    diff <(find 0 acme/Tiny/config.json --data "$some") <(printf '/acme/Tiny/config.json\t%s\n' \
        "200"$'\t'"getcontentlength"$'\t'"$("$WFS" cat "$MODEL" hf/config.json | wc -c)" 404$'\t'supportedlock$'\t' 404$'\t''{urn:a&<b}x'$'\t')
    diff <(find 0 acme --data "$some" | cut -f 2,3) <(printf '404\t%s\n' getcontentlength supportedlock '{urn:a&<b}x')
    for body in '<a' '<a/>' '<!DOCTYPE a [<!ENTITY b "c">]><propfind xmlns="DAV:"><prop>&b;</prop></propfind>' '<propfind xmlns="DAV:"/>'; do
        [ "$(found_status acme --header 'Depth: 0' --data "$body")" = 400 ]
    done
    head -c 8193 /dev/zero | tr '\0' ' ' >"$OUT/large"
    [ "$(found_status acme --header 'Depth: 0' --data-binary "@$OUT/large")" = 413 ]
    [ "$(found_status acme --header 'Depth: 0' --header 'Transfer-Encoding: chunked' --data-binary "@$OUT/large")" = 413 ]
    [ "$(found_status acme --header 'Depth: 0' --header 'Transfer-Encoding: chunked' --data "$some")" = 207 ]
}

@test "a listing of everything below is refused, and what is not here is not found" {
    offer "acme/Tiny=$MODEL"
    for depth in infinity 2 "0, 1" ""; do
        curl --silent --request PROPFIND --header "Depth: $depth" --write-out '%{http_code}' "$URL/acme/Tiny/" >"$OUT/body"
        grep -qF '<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>' "$OUT/body"
        [ "$(tail -n 1 "$OUT/body")" = 403 ]
    done
    for path in none none/ acme/None/ acme/Tiny/none acme/Tiny/none/ acme/Tiny/config.json/ acme/Tiny/../Tiny/ acme/Tiny/%2e%2e/ acme/%00 acme/Tiny-GGUF/Tiny-IQ1_S.gguf; do
        [[ $(found_status "$path" --header "Depth: 1") == 40[45] ]]
    done
}

@test "odd names and directories are listed so that their addresses work" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model"
    name=$'a "b" & <i>%23#?:\x01 é.txt'
    echo odd >"$OUT/model/$name"
    mkdir "$OUT/model/1_Pooling"
    echo '{}' >"$OUT/model/1_Pooling/config.json"
    offer "acme/Tiny=$OUT/model"
    find 1 acme/Tiny/ >"$OUT/list"
    grep -qF "/acme/Tiny/$name"$'\t200\tgetcontentlength\t4' "$OUT/list"
    href=$(grep -oE '<D:href>[^<]*%20%22b[^<]*' "$OUT/multistatus" | sed 's/<D:href>//')
    [ "$(get "$URL$href")" = odd ]
    grep -qxF $'/acme/Tiny/1_Pooling/\t200\tresourcetype\tcollection' "$OUT/list"
    [ "$(find 1 acme/Tiny/1_Pooling | values getcontentlength | tail -n 1)" = $'/acme/Tiny/1_Pooling/config.json\t3' ]
}

@test "the token and the hosts of GET count, too" {
    echo secret >"$OUT/token"
    offer --token-file "$OUT/token" "acme/Tiny=$MODEL"
    for method in OPTIONS PROPFIND; do
        [ "$(status_of --request $method --header 'Depth: 1' --dump-header "$OUT/headers" "$URL/acme/")" = 401 ]
        [ "$(header WWW-Authenticate)" = 'Basic realm="wfs"' ]
    done
    [ -n "$(find 1 acme/ --user any:secret)" ]
    [ -n "$(find 1 acme/ --header 'Authorization: Bearer secret')" ]
    [ "$(found_status acme/ --header 'Depth: 1' --user any:other)" = 401 ]
    kill "$SERVER"
    offer "acme/Tiny=$MODEL"
    [ "$(found_status acme/ --header 'Depth: 1' --header 'Host: other.example')" = 421 ]
    [ "$(status_of --request OPTIONS --header 'Host: other.example' "$URL/")" = 421 ]
}
