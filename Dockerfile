# docker build -t wfs . && docker run --rm --device /dev/fuse --cap-add SYS_ADMIN -v ~/models:/models:ro wfs \
#     exec /models/Llama-3.2-1B -- ls -l {}
# Without a mount no device is needed: docker run --rm -v ~/models:/models:ro wfs info /models/Llama-3.2-1B
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential debhelper meson pkg-config \
    libfuse3-dev libzip-dev zlib1g-dev libzstd-dev libyajl-dev libutf8proc-dev libyaml-dev nettle-dev libpcre2-dev libcurl4-openssl-dev libexpat1-dev \
    protobuf-c-compiler libprotobuf-c-dev libmicrohttpd-dev libseccomp-dev
COPY . /src/wfs
RUN cd /src/wfs && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -uc

FROM debian:12-slim
COPY --from=build /src/wfs_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates fuse3 /tmp/wfs_*.deb \
    && rm -rf /var/lib/apt/lists/* /tmp/wfs_*.deb
ENTRYPOINT ["wfs"]
CMD ["--help"]
