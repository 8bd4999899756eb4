# `wfs serve` as an object store: listings, objects, errors and signatures of S3, which curl makes here.

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

S3="x-amz-content-sha256: UNSIGNED-PAYLOAD"

# ask PATH [FLAGS]: a request as S3's clients send it, without a signature.
ask() {
    curl --silent --path-as-is --dump-header "$OUT/headers" --header "$S3" "${@:2}" "$URL/$1"
}

values() { # ELEMENT: its values in an answer on standard input
    grep -o "<$1>[^<]*</$1>" | sed 's/<[^>]*>//g'
}

@test "buckets are owners, keys are models and files, and objects their bytes" {
    offer "acme/Tiny=$MODEL" "other/Model=$MODEL"
    [ "$(ask "" | values Name | tr '\n' ' ')" = "acme other " ]
    [ "$(ask "acme?list-type=2&delimiter=/&prefix=Tiny-G" | values Prefix | tr '\n' ' ')" = "Tiny-G Tiny-GGUF/ " ]
    ask "acme?list-type=2&prefix=Tiny/" >"$OUT/list"
    diff <(values Key <"$OUT/list") <("$WFS" ls "$MODEL" hf | sed 's|^|Tiny/|' | LC_ALL=C sort)
    "$WFS" cat "$MODEL" gguf/model-Q8_0.gguf >"$OUT/file"
    ask acme/Tiny-GGUF/Tiny-Q8_0.gguf | cmp - "$OUT/file"
    ask "acme?list-type=2&prefix=Tiny-GGUF/Tiny-Q8_0.gguf" >"$OUT/list"
    [ "$(values Size <"$OUT/list")" -eq "$(stat -c %s "$OUT/file")" ]
    ask acme/Tiny-GGUF/Tiny-Q8_0.gguf --head >"$OUT/head"
    [ "$(header ETag)" = "$(values ETag <"$OUT/list" | sed 's/&#34;/"/g')" ]
    [[ $(header ETag) == *-1\" ]] # not taken for an MD5
    etag=$(header ETag)
    get --dump-header "$OUT/headers" --head "$URL/acme/Tiny-GGUF/Tiny-Q8_0.gguf" # as clients without a key ask
    [ "$(header ETag)" = "$etag" ]
    same eval 'unset "${!AWS_@}" && AWS_ENDPOINT_URL=$URL HOME=$OUT CACHE_DIRECTORY=$OUT "$WFS" cat s3://acme/Tiny model.safetensors' == "$WFS" cat "$MODEL" model.safetensors
    same ask acme/Tiny-GGUF/Tiny-Q8_0.gguf --range 5-70000 --header "If-Match: $(header ETag)" == eval 'tail -c +6 "$OUT/file" | head -c 69996'
    same ask acme/Tiny-MLX-4bit/config.json == "$WFS" cat "$MODEL" mlx/4bit/config.json
    [[ $(ask "acme?location") == *"<LocationConstraint "*"></LocationConstraint>"* ]]
    [[ $(ask "acme?versioning") == *"<VersioningConfiguration "* ]]
    [ "$(status_of --header "$S3" --head "$URL/acme")" = 200 ]
    [ "$(status_of --header "$S3" --head "$URL/none")" = 404 ]
}

@test "pages have every key once, in order, for both versions and with prefixes in common" {
    offer "acme/Tiny=$MODEL" "acme/Tiny.b=$MODEL"
    while read -r size parameters; do
        ask "acme?$parameters&encoding-type=url" >"$OUT/whole"
        : >"$OUT/pages"
        next=
        for ((i = 0; i < 40; i++)); do
            ask "acme?$parameters&encoding-type=url&max-keys=$size&$next" >"$OUT/page"
            sed 's/.*<IsTruncated>//' "$OUT/page" | grep -oE '<(Key|CommonPrefixes><Prefix)>[^<]*' | sed 's/.*>//' >"$OUT/keys"
            cat "$OUT/keys" >>"$OUT/pages"
            [ "$(values IsTruncated <"$OUT/page")" = true ] || break
            [ "$(wc -l <"$OUT/keys")" -eq "$size" ]
            token=$(values NextContinuationToken <"$OUT/page")
            next=continuation-token=${token//=/%3D}
            [ -n "$token" ] || next=marker=$(values NextMarker <"$OUT/page")
        done
        diff <(LC_ALL=C sort "$OUT/pages") <(sed 's/.*<IsTruncated>//' "$OUT/whole" | grep -oE '<(Key|CommonPrefixes><Prefix)>[^<]*' | sed 's/.*>//' | LC_ALL=C sort)
        [ -z "$(sort "$OUT/pages" | uniq -d)" ]
    done <<END
120 list-type=2
25 delimiter=/
1 list-type=2&delimiter=i&prefix=Tiny/
160 delimiter=GGUF/Tiny
END
    ask "acme?list-type=2" | values Key >"$OUT/all"
    LC_ALL=C sort --check "$OUT/all"
    [ "$(ask "acme?list-type=2&start-after=Tiny/model.safetensors" | values Key)" = "$(sed '1,/^Tiny\/model.safetensors$/d' "$OUT/all")" ]
    [ "$(ask "acme?list-type=2&max-keys=0" | values IsTruncated)" = false ]
    [ "$(ask "acme?list-type=2&prefix=Tiny-MLX-4bit-g32/" | values Key | head -n 1)" = Tiny-MLX-4bit-g32/README.md ]
    run ! grep -q g32 "$OUT/all"
}

@test "odd names survive, percent-encoded or as references" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model"
    name=$'a "b" & <i>%23#?\x01+ é.txt'
    echo odd >"$OUT/model/$name"
    offer "acme/Tiny=$OUT/model"
    key=$(ask "acme?prefix=Tiny/a&encoding-type=url" | values Key)
    [ "$key" = "Tiny/a%20%22b%22%20%26%20%3Ci%3E%2523%23%3F%01%2B%20%C3%A9.txt" ]
    [ "$(ask "acme/$key")" = odd ]
    ask "acme?prefix=Tiny/a" | grep -qF '<Key>Tiny/a &#34;b&#34; &#38; &#60;i&#62;%23#?&#1;+ é.txt</Key>'
    [[ $(ask "acme?prefix=%3C/Prefix%3E%3Cx%3E&list-type=2") == *"<Prefix>&#60;/Prefix&#62;&#60;x&#62;</Prefix>"* ]]
}

@test "errors are S3's" {
    offer "acme/Tiny=$MODEL"
    error() { ask "$@" | values Code; }
    [ "$(error none)" = NoSuchBucket ]
    [ "$(error none/a/b)" = NoSuchBucket ]
    for key in none Tiny/none None/config.json Tiny/config.json/ /Tiny/config.json Tiny/../Tiny/config.json Tiny/%2e%2e/%2e%2e/etc/passwd Tiny-GGUF/Tiny-IQ1_S.gguf; do
        [ "$(error "acme/$key")" = NoSuchKey ]
    done
    [ "$(error acme/Tiny/config.json --range 999999-)" = InvalidRange ]
    [[ $(header Content-Range) == "bytes */"* ]]
    [ "$(error acme/Tiny/config.json --header 'If-Match: "x"')" = PreconditionFailed ]
    [ "$(error "acme/Tiny/config.json?tagging")" = NotImplemented ]
    [ "$(error "acme?uploads")" = NotImplemented ]
    for parameter in max-keys=x max-keys=-1 max-keys= list-type=3 encoding-type=x "list-type=2&continuation-token=%00" "list-type=2&continuation-token=AA=="; do
        [ "$(error "acme?$parameter")" = InvalidArgument ]
    done
    for method in PUT POST DELETE; do
        [ "$(error acme/Tiny/config.json --request $method)" = MethodNotAllowed ]
    done
    [ "$(status_of --header "$S3" --header 'If-None-Match: *' "$URL/acme/Tiny/config.json")" = 304 ]
    [ "$(ask "acme?list-type=2&max-keys=99999999999999999999999" | values MaxKeys)" = 1000 ]
}

@test "an object has one part and the version null" {
    offer "acme/Tiny=$MODEL"
    file=$URL/acme/Tiny/config.json
    "$WFS" cat "$MODEL" hf/config.json >"$OUT/file"
    size=$(stat -c %s "$OUT/file")
    for flags in "" "--head"; do # S3 answers a part as a range, of HEAD, too
        get $flags --dump-header "$OUT/headers" "$file?partNumber=1" >"$OUT/body"
        [ "$(status_of $flags "$file?partNumber=1")" = 206 ]
        [ "$(header Content-Range)" = "bytes 0-$((size - 1))/$size" ]
        [ "$(header Content-Length)" = "$size" ]
        [ -z "$(header x-amz-mp-parts-count)" ]
    done
    same get "$file?partNumber=1&versionId=null" == cat "$OUT/file"
    [ "$(status_of "$file?versionId=null")" = 200 ]
    [ "$(status_of --range 0-1 "$file?versionId=null")" = 206 ]
    [ "$(status_of --header 'If-None-Match: *' "$file?partNumber=1")" = 304 ]
    while read -r parameter status code flags; do
        [ "$(curl --silent $flags "$file?$parameter" | values Code)" = "$code" ]
        [ "$(status_of --header "$S3" $flags "$file?$parameter")" = "$status" ]
        [ "$(status_of --head $flags "$file?$parameter")" = "$status" ]
    done <<END
partNumber=2 416 InvalidPartNumber
partNumber=10000 416 InvalidPartNumber
partNumber=10001 400 InvalidArgument
partNumber=0 400 InvalidArgument
partNumber=-1 400 InvalidArgument
partNumber=x 400 InvalidArgument
partNumber= 400 InvalidArgument
partNumber=1 400 InvalidRequest --range 0-1
versionId=3HL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo 404 NoSuchVersion
versionId= 400 InvalidArgument
versionId=$(printf 'a%.0s' {1..1025}) 400 InvalidArgument
END
    [ "$(ask "acme/Tiny/none?versionId=null" | values Code)" = NoSuchKey ]
    [ "$(ask "acme/Tiny/none?partNumber=2" | values Code)" = NoSuchKey ]
}

@test "with a token, it is the secret of any key id" {
    echo some/secret+token >"$OUT/token"
    offer --token-file "$OUT/token" "acme/Tiny=$MODEL"
    signed() { curl --silent --aws-sigv4 aws:amz:us-east-1:s3 --user "$1" --header "$S3" "${@:3}" "$URL/$2"; }
    same signed any:some/secret+token acme/Tiny/config.json == "$WFS" cat "$MODEL" hf/config.json
    [ "$(signed any:other acme/Tiny/config.json | values Code)" = SignatureDoesNotMatch ]
    [ "$(ask acme/Tiny/config.json | values Code)" = AccessDenied ]
    [ "$(ask "" | values Code)" = AccessDenied ]
    [ "$(status_of "$URL/acme/Tiny/config.json")" = 401 ]
    [ "$(status_of --header "Authorization: Bearer some/secret+token" "$URL/acme/Tiny/config.json")" = 200 ]
    # through a proxy, whose targets are absolute: those of the AWS CRT are, too
    same signed any:some/secret+token acme/Tiny/config.json --noproxy "" --proxy "$URL" == "$WFS" cat "$MODEL" hf/config.json
}
