#!/bin/bash -eu
# Builds the fuzz targets for OSS-Fuzz, whose Dockerfile copies the project to $SRC/wfs: into $OUT, with their corpora,
# dictionaries and shared libraries. CFLAGS and LIB_FUZZING_ENGINE choose the sanitizer and the engine.
cd "$SRC/wfs"
meson setup "$WORK/build" -Dfuzz=true -Dfuzz_engine="$LIB_FUZZING_ENGINE" -Dbuildtype=plain -Db_lundef=false
grep -v '^#' tests/fuzz/targets | while read -r target _ _ corpora _; do
    ninja -C "$WORK/build" "tests/fuzz/fuzz_$target"
    cp "$WORK/build/tests/fuzz/fuzz_$target" "$OUT/"
    # shellcheck disable=SC2016 # the loader expands it
    patchelf --set-rpath '$ORIGIN/lib' "$OUT/fuzz_$target" # the machines that fuzz lack the libraries
    # Targets may replay folders of other places, too: those are not here.
    for corpus in ${corpora//,/ }; do
        [ ! -d "tests/fuzz/corpus/$corpus" ] || (cd tests/fuzz/corpus && zip -q -r "$OUT/fuzz_${target}_seed_corpus.zip" "$corpus")
    done
    scripts/fuzz words "$target" >"$OUT/fuzz_$target.dict"
done
mkdir -p "$OUT/lib"
ldd "$OUT"/fuzz_* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -v -E '/(libc|libm|libpthread|libdl|librt|libresolv|ld-linux[^/]*)\.so' | xargs -I {} cp {} "$OUT/lib/"
