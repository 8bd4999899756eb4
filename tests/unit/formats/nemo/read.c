/* NeMo's archives: tar headers written by hand, as tar and Python's tarfile write them. */
#include "tests/unit/formats/torch/archive.h"

#include "base/little_endian.h"

static const struct open_options defaults;

enum { BLOCK = 512 };

static void put_padding(struct buffer *out)
{
    buffer_append_zeros(out, (BLOCK - out->length % BLOCK) % BLOCK);
}

/* Appends a member, whose size field is `size`. */
static void put_member(struct buffer *out, const char *name, char type, const char *size, const void *bytes,
                       size_t length)
{
    char header[BLOCK] = {0}, checksum[8];
    unsigned sum = 8 * ' ';
    snprintf(header, 100, "%s", name);
    memcpy(header + 124, size, strnlen(size, 12));
    header[156] = type;
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    snprintf(checksum, sizeof checksum, "%06o", sum);
    memcpy(header + 148, checksum, 7);
    header[155] = ' ';
    buffer_append(out, header, BLOCK);
    if (length > 0)
        buffer_append(out, bytes, length);
    put_padding(out);
}

static void put_file(struct buffer *out, const char *name, const void *bytes, size_t length)
{
    char size[12];
    snprintf(size, sizeof size, "%011o", (unsigned)length);
    put_member(out, name, '0', size, bytes, length);
}

/* The bytes of a torch checkpoint of w = [1, 2]. */
static struct buffer weights(void)
{
    float values[] = {1, 2};
    static const char pickle[] =
        "}Vw\n" PICKLE_TENSOR(PICKLE_STORAGE("FloatStorage", "0", "2"), "0", "I2\n", "I1\n") "s.";
    little_endian(values, 2, sizeof *values);
    const struct archive_member members[] = {
        {"archive/data.pkl", pickle, sizeof pickle - 1}, {"archive/data/0", values, 8}, {"archive/version", "3\n", 2}};
    struct buffer out = {0};
    char bytes[4096];
    archive_write("weights", members, 3);
    FILE *file = fopen("weights", "rb");
    files_must(file != NULL, "weights");
    buffer_append(&out, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    return out;
}

/* Writes the archive, which is then empty, and checks what it holds. */
static void check(struct buffer *archive, const char *says)
{
    files_write("x.nemo", archive->bytes, archive->length);
    char *described = archive_describe("x.nemo", &defaults);
    CHECK_TEXT(described, says);
    free(described);
    buffer_free(archive);
    *archive = (struct buffer){0};
}

static void end_archive(struct buffer *archive)
{
    buffer_append_zeros(archive, 2 * BLOCK);
}

static void check_archives(const struct buffer *torch)
{
    struct buffer archive = {0};
    put_file(&archive, "model_config.yaml", "a: 1", 4);
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    end_archive(&archive);
    check(&archive, "w F32 [2] 1 2");
    put_member(&archive, "./", '5', "0", "", 0);
    put_file(&archive, "./model_weights.ckpt", torch->bytes, torch->length);
    check(&archive, "w F32 [2] 1 2"); /* without an end, as some tars are cut */

    static const char pax[] = "11 a=bcdef\n27 path=model_weights.ckpt\n";
    put_member(&archive, "x", 'x', "46", pax, sizeof pax - 1);
    put_file(&archive, "short", torch->bytes, torch->length);
    check(&archive, "w F32 [2] 1 2");
    put_member(&archive, "././@LongLink", 'L', "23", "model_weights.ckpt", 19);
    put_file(&archive, "short", torch->bytes, torch->length);
    check(&archive, "w F32 [2] 1 2");
}

static void check_base_256(const struct buffer *torch)
{
    struct buffer archive = {0};
    char size[12] = "\x80";
    for (unsigned i = 0; i < 8; i++)
        size[11 - i] = (char)(torch->length >> (8 * i));
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    unsigned sum = 0;
    memcpy(archive.bytes + 124, size, 12);
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : archive.bytes[i];
    snprintf((char *)archive.bytes + 148, 8, "%06o", sum);
    check(&archive, "w F32 [2] 1 2");
}

static void check_faults(const struct buffer *torch)
{
    struct buffer archive = {0};
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    archive.bytes[0] = 'M';
    check(&archive, "x.nemo: offset 0: not a tar archive, or damaged: the checksum of a header does not match");
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    archive.length -= BLOCK;
    check(&archive, "x.nemo: offset 0: truncated: a member is longer than the rest of the file");
    put_file(&archive, "a", "", 0);
    archive.length -= 1;
    check(&archive, "x.nemo: offset 0: truncated: a header is cut off");
    put_member(&archive, "model_weights.ckpt", '2', "0", "", 0);
    check(&archive, "x.nemo: model_weights.ckpt is missing");
    put_member(&archive, "model_weights.ckpt", '0', "-1", "", 0);
    check(&archive, "x.nemo: offset 0: a member whose size is not a number >= 0");
    put_file(&archive, "model_weights/.metadata", "", 0);
    check(&archive, "x.nemo: the weights are a distributed checkpoint; unpack the archive with tar");
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    check(&archive, "x.nemo: two members named model_weights.ckpt");
    put_file(&archive, "a", "", 0);
    put_file(&archive, "./a", "", 0);
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    check(&archive, "x.nemo: two members named a");
    put_member(&archive, "x", 'x', "3", "9 a", 3);
    check(&archive, "x.nemo: offset 0: a damaged record of pax");
}

static void check_side_files(const struct buffer *torch)
{
    struct buffer archive = {0};
    struct error error;
    char text[5] = "";
    put_file(&archive, "z.model", "zzzz", 4);
    put_file(&archive, "./model_config.yaml", "a: 1", 4);
    put_file(&archive, "../outside", "x", 1);
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    files_write("x.nemo", archive.bytes, archive.length);
    const struct checkpoint *checkpoint = checkpoint_open("x.nemo", readers, &defaults, &error);
    CHECK(checkpoint != NULL && checkpoint->n_side_files == 2);
    CHECK_TEXT(checkpoint->side_files[0].name, "model_config.yaml");
    CHECK(source_read(checkpoint->side_files[0].source, 0, 4, text, &error) && strcmp(text, "a: 1") == 0);
    CHECK(source_mapping(checkpoint->sources[1], 0, 4) != NULL);
    checkpoint_close(checkpoint);
    buffer_free(&archive);
}

/* Makes a file of gzip of the bytes, with the fields of its header that `flags` names; takes the bytes. */
static struct buffer compressed(struct buffer *bytes, unsigned flags)
{
    struct buffer out = {0};
    size_t length;
    unsigned char *deflated = deflate_raw(bytes->bytes, bytes->length, 6, &length);
    buffer_append_le(&out, 0x088b1f | flags << 24, 4);
    buffer_append_zeros(&out, 6);
    if (flags & 4)
        buffer_append(&out, "\3\0abc", 5);
    if (flags & 8)
        buffer_append(&out, "name", 5);
    if (flags & 16)
        buffer_append(&out, "comment", 8);
    if (flags & 2)
        buffer_append_le(&out, 0, 2);
    buffer_append(&out, deflated, length);
    buffer_append_le(&out, crc32(0, bytes->bytes, (uInt)bytes->length), 4);
    buffer_append_le(&out, bytes->length, 4);
    free(deflated);
    buffer_free(bytes);
    *bytes = (struct buffer){0};
    return out;
}

static struct buffer compressed_archive(const struct buffer *torch, unsigned flags)
{
    struct buffer archive = {0};
    put_file(&archive, "model_config.yaml", "a: 1", 4);
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    end_archive(&archive);
    return compressed(&archive, flags);
}

static void check_gzip(const struct buffer *torch)
{
    struct buffer archive;
    for (unsigned flags = 0; flags < 32; flags++) {
        archive = compressed_archive(torch, flags);
        check(&archive, "w F32 [2] 1 2");
    }
    archive = compressed_archive(torch, 0);
    archive.bytes[archive.length - 8] ^= 1;
    check(&archive, "x.nemo: gzip: CRC error");
    archive = compressed_archive(torch, 0);
    archive.bytes[archive.length - 4] ^= 1;
    check(&archive, "x.nemo: gzip inflates to less than its 3073 bytes");
    archive = compressed_archive(torch, 0);
    archive.bytes[archive.length - 1] = 0xff;
    check(&archive, "x.nemo: gzip: it would inflate to more than 64 times its size");
    archive = compressed_archive(torch, 8);
    archive.length = 12;
    check(&archive, "x.nemo: gzip: the header is damaged or truncated");
    buffer_append(&archive, "\x1f\x8b\x08\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0", 20);
    check(&archive, "x.nemo: gzip: it holds nothing");
}

/* Files that do not all fit are an error: none is left out unsaid. */
static void check_many_side_files(const struct buffer *torch, unsigned n, const char *says)
{
    struct buffer archive = {0};
    char name[16];
    put_file(&archive, "model_weights.ckpt", torch->bytes, torch->length);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%u.txt", i);
        put_file(&archive, name, "", 0);
    }
    end_archive(&archive);
    check(&archive, says);
}

int main(void)
{
    files_begin();
    struct buffer torch = weights();
    check_archives(&torch);
    check_base_256(&torch);
    check_faults(&torch);
    check_side_files(&torch);
    check_many_side_files(&torch, 4096, "w F32 [2] 1 2");
    check_many_side_files(&torch, 4097, "x.nemo: more than 4096 files beside the weights");
    check_gzip(&torch);
    buffer_free(&torch);
    files_remove();
    return check_done();
}
