# docker build -t wfs . && docker run --rm --device /dev/fuse --cap-add SYS_ADMIN -v ~/models:/models:ro wfs \
#     exec /models/Llama-3.2-1B -- ls -l {}
# Without a mount no device is needed: docker run --rm -v ~/models:/models:ro wfs info /models/Llama-3.2-1B
# The image has 12 MB, compressed: wfs, its libraries, certificates and the commands of busybox.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential debhelper meson pkg-config \
    libfuse3-dev libzip-dev zlib1g-dev libzstd-dev libutf8proc-dev libyaml-dev nettle-dev libpcre2-dev libcurl4-openssl-dev libexpat1-dev \
    protobuf-c-compiler libprotobuf-c-dev libmicrohttpd-dev libseccomp-dev python3-pip
COPY . /src/wfs
RUN cd /src/wfs && scripts/yyjson && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -uc

RUN apt-get install -y --no-install-recommends busybox-static ca-certificates /src/wfs_*.deb && /src/wfs/packaging/image/collect /image

FROM scratch
COPY --from=build /image /
ENV PATH=/usr/bin:/bin
ENTRYPOINT ["wfs"]
CMD ["--help"]
