# shellcheck shell=bash
# Sourced by the scripts beside it: what compilers and pip made before, for this run and for the next one on the machine.
export CCACHE_DIR=/var/cache/wfs-ci/ccache CCACHE_NOHASHDIR=1 CCACHE_UMASK=022 CCACHE_SLOPPINESS=locale
mkdir -p "$CCACHE_DIR"

# Shows the cache inside a root, in a mount namespace of its own.
share_cache() { # ROOT
    mkdir -p "$1$CCACHE_DIR"
    mount --bind "$CCACHE_DIR" "$1$CCACHE_DIR"
}

# Puts what scripts/setup fetched of yyjson, if it did, into another copy of this tree.
share_yyjson() { # TREE
    [ ! -d subprojects/yyjson-0.10.0 ] || cp -r subprojects/yyjson-0.10.0 "$1/subprojects/"
}
