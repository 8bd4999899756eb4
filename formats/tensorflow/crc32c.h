/* CRC-32C (Castagnoli), as it is, and in the masked form in which LevelDB and TensorFlow store it. Source: RFC 3720,
 * appendix B.4; LevelDB's table_format.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t length);
uint32_t crc32c_masked(const void *bytes, size_t length);
