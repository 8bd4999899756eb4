/* The build of wfs: 16 hex digits of a SHA-256 over the names and contents of the program's sources. It tells apart
 * builds of one version, whose files may differ, and is equal for equal sources, on every machine. build.c is written
 * by write_build.py, whenever a source has changed. */
#pragma once

extern const char wfs_build[];
