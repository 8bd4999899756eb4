# libwfs as packages install it: its names, its header in C and C++, pkg-config, the example, the manual page.

load lib

setup() {
    BUILD=$(dirname "$WFS")
    SHARED=$BUILD/fs/lib/libwfs.so
    STATIC=$BUILD/fs/lib/libwfs.a
    export PKG_CONFIG_PATH=$BUILD/meson-uninstalled
}

# The functions that wfs.h declares.
declared() {
    sed -n 's/^WFS_API .*\(wfs_[a-z_]*\)(.*/\1/p' "$HERE/../../fs/lib/wfs.h" | sort
}

# A library with sanitizers links only to programs that have them.
need_plain_library() {
    nm -D --undefined-only "$SHARED" | grep -qE '__(asan|tsan|ubsan)_' && skip "the library has sanitizers"
    return 0
}

@test "the libraries have the functions of wfs.h, and no other global name" {
    need nm
    [ "$(declared | wc -l)" -ge 20 ]
    diff <(declared) <(nm -D --defined-only "$SHARED" | sed -n 's/.* T \([^@]*\)@@WFS_0$/\1/p' | sort)
    [ -z "$(nm -D --defined-only "$SHARED" | grep -vE ' T wfs_[a-z_]*@@WFS_0$| A WFS_0$')" ]
    [ -e "$STATIC" ] || skip "no static library is built"
    need_plain_library
    diff <(declared) <(nm --extern-only --defined-only "$STATIC" | sed -n 's/.* [A-Z] //p' | sort)
}

@test "the header is C11 and C++ without warnings" {
    need cc
    need c++
    cc -x c -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$HERE/../../fs/lib/wfs.h"
    c++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$HERE/../../fs/lib/wfs.h"
}

@test "the example prints tensors and values, linked either way" {
    need cc
    need pkg-config
    need jq
    need_numpy
    need_plain_library
    local program=$BATS_TEST_TMPDIR/tensors flags libraries model=$BATS_TEST_TMPDIR/model.safetensors
    make_input large "$model"
    read -ra flags <<<"$(pkg-config --cflags wfs)"
    read -ra libraries <<<"$(pkg-config --libs wfs)"
    cc -Wall -Werror "$HERE/../../examples/tensors.c" "${flags[@]}" "${libraries[@]}" -o "$program"
    LD_LIBRARY_PATH=$BUILD/fs/lib "$program" "$model" >"$BATS_TEST_TMPDIR/tensors.txt"
    "$WFS" cat "$model" metadata.json | jq -r '.tensors[] | "\(.name) \(.dtype) [\(.shape | join(", "))]"' | diff - "$BATS_TEST_TMPDIR/tensors.txt"
    LD_LIBRARY_PATH=$BUILD/fs/lib "$program" "$model" large >"$BATS_TEST_TMPDIR/values.txt"
    "$WFS" cat "$model" tensors/large/f32 | "$PYTHON" -c "
import sys, numpy
values = numpy.frombuffer(sys.stdin.buffer.read(32), '<f4')
printed = numpy.array([float(line) for line in open(sys.argv[1])], '<f4')
assert len(printed) == 8 and numpy.array_equal(values, printed), (values, printed)" "$BATS_TEST_TMPDIR/values.txt"
    run -1 --separate-stderr env LD_LIBRARY_PATH="$BUILD/fs/lib" "$program" "$model" absent
    [ "$stderr" = "there is no tensor 'absent'" ]

    [ -e "$STATIC" ] || skip "no static library is built"
    read -ra libraries <<<"$(pkg-config --static --libs wfs | sed 's/-lwfs/-l:libwfs.a/')"
    cc -Wall -Werror "$HERE/../../examples/tensors.c" "${flags[@]}" "${libraries[@]}" -o "$program-static"
    "$program-static" "$model" | diff - "$BATS_TEST_TMPDIR/tensors.txt"
}

@test "wfs(3) describes every function" {
    need man
    run man --warnings -l "$BUILD/fs/lib/wfs.3"
    [ "$status" -eq 0 ]
    for function in $(declared); do
        grep -q "$function()" <<<"$output"
    done
}

@test "Python compares and attests as the commands do, and opens libraries" {
    need_plain_library
    local llama=$HERE/../data/gguf/models/llama-tiny out=$BATS_TEST_TMPDIR
    "$WFS" cp "$llama" gguf/model-Q4_K_M.gguf "$out/made.gguf"
    "$WFS" cp "$llama" gguf/model-Q5_K_M.gguf "$out/other.gguf"
    "$WFS" verify --json "$out/made.gguf" "$llama" >"$out/made.json"
    run -1 "$WFS" verify --json "$out/other.gguf" "$out/made.gguf"
    printf '%s' "$output" >"$out/other.json"
    run -1 "$WFS" diff --json "$llama" "$out/made.gguf"
    printf '%s' "$output" >"$out/diff.json"
    "$WFS" attest -o name=Other "$llama" hf model.gguf >"$out/statement"
    "$WFS" info --json -o name=Other "$llama" >"$out/info.json"
    "$WFS" info --architectures --json >"$out/architectures.json"
    "$WFS" info --quantization --json "$llama" >"$out/quantizations.json"
    "$WFS" verify --json --attestation "$out/statement" "$llama" >"$out/stated.json"
    PYTHONPATH=$HERE/../../python WFS_LIBRARY=$BUILD/fs/lib/libwfs.so "$PYTHON" - "$llama" "$out" <<'END'
import errno, json, pathlib, sys, wfs
llama, out = map(pathlib.Path, sys.argv[1:])

def printed(name):
    return {key: value for key, value in json.loads((out / name).read_text()).items() if key not in ("wfs", "schema")}

def failure(work):
    try:
        work()
    except wfs.WfsError as error:
        return error.errno, error.strerror

made, other = wfs.compare(out / "made.gguf", llama), wfs.compare(out / "other.gguf", out / "made.gguf")
assert made["answer"] == "identical" and made == printed("made.json"), made
assert other["answer"] == "different" and other == printed("other.json"), other
assert failure(lambda: wfs.compare(llama, llama))[1].endswith("not a GGUF file")
assert failure(lambda: wfs.compare(out / "made.gguf", llama, allow_other=True))[0] == errno.EINVAL
assert wfs.architectures() == printed("architectures.json")
assert wfs.diff(llama, out / "made.gguf") == printed("diff.json")
assert wfs.diff(llama, llama)["counts"]["tensors_differ"] == 0
assert failure(lambda: wfs.diff(llama, out / "absent"))[0] == errno.ENOENT
assert failure(lambda: wfs.diff(llama, llama, split="1M"))[0] == errno.EINVAL
model = wfs.open(llama, name="Other")
assert model.info() == printed("info.json") and model.info()["layers"] == 2, model.info()
assert model.quantizations() == json.loads((out / "quantizations.json").read_text())
assert model.quantizations(all=True)[0]["type"] == model.quantizations()[0]["type"]
assert model.attest("hf", "model.gguf") + "\n" == (out / "statement").read_text()
stated = wfs.compare_attestation(out / "statement", llama)
assert stated["identical"] and stated == printed("stated.json"), stated
assert not wfs.compare_attestation(out / "statement", llama, name="Third")["identical"]
assert failure(lambda: wfs.compare_attestation(out / "made.gguf", llama))[0] == errno.EIO
assert failure(lambda: model.attest("hf", "absent"))[0] == errno.ENOENT
assert failure(model.attest)[0] == errno.EINVAL
library = wfs.open(llama.parent, library=True)
assert failure(library.quantizations)[0] == errno.EIO
path = "models/local/llama-tiny/llama-tiny-Q8_0.gguf"
assert library.read(path) == wfs.open(llama).read("gguf/model-Q8_0.gguf")
END
}
