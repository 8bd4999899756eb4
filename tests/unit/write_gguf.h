/* GGUF files put together by hand, one number after the other, in either byte order and with the lengths of any
 * version. */
#pragma once

#include "base/buffer.h"

#include "tests/unit/files.h"

struct assembly {
    struct buffer bytes;
    unsigned version;
    bool big_endian;
};

static inline void put(struct assembly *file, uint64_t number, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(number >> 8 * (file->big_endian ? size - 1 - i : i));
        buffer_append(&file->bytes, &byte, 1);
    }
}

/* A length: 4 bytes in version 1. */
static inline void put_count(struct assembly *file, uint64_t count)
{
    put(file, count, file->version == 1 ? 4 : 8);
}

static inline void put_text(struct assembly *file, const char *text, size_t length)
{
    put_count(file, length);
    buffer_append(&file->bytes, text, length);
}

static inline void put_string(struct assembly *file, const char *text)
{
    put_text(file, text, strlen(text));
}

static inline void begin(struct assembly *file, unsigned version, uint64_t n_tensors, uint64_t n_kvs)
{
    buffer_free(&file->bytes);
    file->version = version;
    buffer_append(&file->bytes, "GGUF", 4);
    put(file, version, 4);
    put_count(file, n_tensors);
    put_count(file, n_kvs);
}

/* The beginning of a key: its value is to follow. */
static inline void put_key(struct assembly *file, const char *key, unsigned type)
{
    put_string(file, key);
    put(file, type, 4);
}

static inline void put_array(struct assembly *file, unsigned type, uint64_t count)
{
    put(file, type, 4);
    put_count(file, count);
}

static inline void put_u32_key(struct assembly *file, const char *key, uint32_t value)
{
    put_key(file, key, 4);
    put(file, value, 4);
}

/* Dimensions in the file's order, the fastest first. */
static inline void put_tensor(struct assembly *file, const char *name, unsigned rank, const uint64_t *dimensions,
                              unsigned type, uint64_t offset)
{
    put_string(file, name);
    put(file, rank, 4);
    for (unsigned i = 0; i < rank; i++)
        put_count(file, dimensions[i]);
    put(file, type, 4);
    put(file, offset, 8);
}

#define DIMENSIONS(...) (sizeof((uint64_t[]){__VA_ARGS__}) / 8), ((const uint64_t[]){__VA_ARGS__})

static inline void pad(struct assembly *file, size_t alignment)
{
    buffer_append_zeros(&file->bytes, (alignment - file->bytes.length % alignment) % alignment);
}

/* Padding, and `length` bytes of data: 0, 1, 2 ... */
static inline void put_data(struct assembly *file, size_t alignment, size_t length)
{
    pad(file, alignment);
    for (size_t i = 0; i < length; i++)
        put(file, i & 0xff, 1);
}

static inline void write_file(const struct assembly *file, const char *path)
{
    files_write(path, file->bytes.bytes, file->bytes.length);
}
