/* The commit that the program was built from, as `git describe` says it: "v0.2.0", "v0.2.0-3-g1a2b3c4d",
 * "1a2b3c4d-dirty"; "none" where the sources are no clone. It is for people: builds of equal sources agree, whatever it
 * is (fs/tree/identity.h). */
#pragma once

extern const char wfs_revision[];
