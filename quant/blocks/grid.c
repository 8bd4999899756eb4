#include "quant/blocks/grid.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A bit for each combination of levels, in ascending order of code, the lowest bit of a word first: set for points. If
 * all points have an even sum of levels, only such combinations have bits. */

static const uint64_t iq1_points[103] = {
    0x514202a085142555, 0xa28a2086a8314508, 0x14508514202a081a, 0xa005152545442082, 0x8208001888208202,
    0x0aaabb88a02a03a0, 0xaa0a0022000baa90, 0x4508514008a0828c, 0x0851421450808821, 0x2a8008a09808308a,
    0x4248208514214508, 0x20a0c22c01450855, 0xa2aaa8242a00268a, 0x0028280808afe208, 0xa82028aa284202a0,
    0xa8bab9089b0a2080, 0x3aaaaea289aeca20, 0xb80e82bbbaeaeb7c, 0x2202920ed3caba22, 0x820aba8aa8202200,
    0x3ba2e04a2a000802, 0x81408100a22b2022, 0x8514012208288aaa, 0x5421450920821550, 0x203aa8230208a085,
    0xa208514254208284, 0x082a021450950820, 0x200248a08082a8b8, 0xab2802a268a28208, 0x083082082085082a,
    0xa085142145004045, 0x8229014500514200, 0x1430a1082a828a00, 0x2145082882145005, 0x2aaa200202208514,
    0xa828ae8ab1122000, 0x0a820070a8aaa1ba, 0x8200840222280208, 0xaa2ab0eaa0804800, 0xa7daea22ba8b20c2,
    0xaa2ab092a86e8b8b, 0x48202a0c448a8b72, 0x20aa082a8a284084, 0xa09aafa222a2ccc8, 0xa82a00020002a8e8,
    0xa2a28ba080200088, 0xba0a328280a0ba28, 0x2ba0a2ebfebab8be, 0x00a2ea280a8a08a2, 0xdeeaa4fa0c0232a1,
    0xeb7ebe8d2ea82bef, 0xdeba7de6bf7ff7fa, 0x12fa26bfff27fb69, 0x0ebeaa10228ae1e9, 0xae820ba8b208aa84,
    0x62048083e924baff, 0x002ba40aa8f2682c, 0x0012aae208082a02, 0x82c920a60a2a8202, 0x8c00a20028829089,
    0x6c00080882001380, 0x8abea602bbaaaa8a, 0xd02e976b8002caa0, 0xdeaa2e108210e9b2, 0x820a0004a5d11528,
    0x20a1010820828a00, 0xa0843222ba39aa82, 0x0262a28a00188009, 0xac21450051441481, 0x20aa085142145082,
    0x45082a120a87aa28, 0x08514208a0051421, 0x22a240a002200145, 0x8a6a08a208008800, 0x0a200080aaaab86e,
    0x5044082122c8e282, 0x8515208a09514214, 0x2a2aaa080a861450, 0x21450851420a0080, 0xe2085142145000a8,
    0x082a82180a828820, 0x0a028bb08aaaa2aa, 0x0aaa80822820aa2a, 0x220288a900280828, 0xba8a08b8280bbea0,
    0xaef8a4baffaeb24b, 0x30a0b668285220aa, 0x6a220828020a80e6, 0x2baaaa020a208062, 0x0808a2a0a9a2eaaa,
    0x0e8200228aa02010, 0x400aa08514214500, 0x4a0006a921450851, 0x440d1000a50802aa, 0x0514214508288214,
    0x0020f2ac82820800, 0x20ba0a280aaa0000, 0x280948820002a2ea, 0x0051454b110014e9, 0x5142145002a80145,
    0x400a288808248808, 0x02a0051401450008, 0x0000000145085140,
};

static const uint64_t iq2xxs_points[52] = {
    0x0040a62099a4f67f, 0x4c00200008060820, 0x3004082c82610598, 0x826900800100c004, 0x0000020020020066,
    0x0442600000000420, 0x0001088041205208, 0x0082824000002100, 0x4080004000400002, 0x0800201300000000,
    0x0000100000000500, 0x0031010026000008, 0x00000c0000044000, 0x0800008100980000, 0x0000000000080200,
    0x0000200000208008, 0x0000100000000000, 0x008040261449a4c0, 0x8001088008800a20, 0x0004200404000104,
    0x2600000000010000, 0x2140000200000140, 0x0ca4020002000000, 0x0000020010012000, 0x0000000800000001,
    0x2000000001001800, 0x2000242000010000, 0x0200000008000000, 0x0100100900000000, 0x0080000008000080,
    0x0000000005000040, 0x0000000020000060, 0x0000000100000000, 0x0000000000000000, 0x0820008002009800,
    0x0000000200000002, 0x2000200008040a60, 0x8000100802004000, 0x0000010000000000, 0x1200000000100000,
    0x0800008010000024, 0x0802000001000000, 0x0000100000000001, 0x0000000000000000, 0x0000000010000040,
    0x0040002000000000, 0x0020000000010002, 0x0000002000000000, 0x0000000000000000, 0x0000020000000000,
    0x0000000000000002, 0x0000000000000000,
};

static const uint64_t iq2xs_points[52] = {
    0x9bcffe1b79bfdfff, 0xfc01102984de0134, 0x221309bc0261779b, 0x53f8008003409800, 0x0480020138804126,
    0xbcdfe14000012010, 0xc0c100984de01389, 0x41b09bc000100805, 0x2080000010098002, 0x2008203300000100,
    0x0000000200000500, 0x20100984ff000008, 0x001004000404804c, 0x08000001809a0020, 0x0000101040004200,
    0x0002040100219400, 0x1a00004100104000, 0x309bc02653f9bfc0, 0x8000001819880a01, 0x00241301040261b7,
    0x2600000480110800, 0x0809004200011140, 0x49bc000000000800, 0x0000030298002013, 0x0221380000040008,
    0x0004800000910084, 0x0088082200400040, 0x0000000018400100, 0x1044100980080000, 0x04000000000000c0,
    0x0000000081010002, 0x0000004000014020, 0x0000100000040000, 0x0440002000000020, 0x017c00c027137800,
    0x0180002010000242, 0x1000200808040e69, 0x4001000020080000, 0x0000022006100202, 0x1342240002000000,
    0x0100040100101020, 0x000a008020000000, 0x0600004000000049, 0x2000000000010000, 0x0000001000020000,
    0x000221b000040004, 0x0168000480000100, 0x8000080002010004, 0x0000000000000000, 0x4800000b08020080,
    0x0030000030000002, 0x0000000000010100,
};

static const uint64_t iq2s_points[52] = {
    0xfbcdff537fbfdfff, 0xfc45502fc4de6736, 0xe6ff6ffcdbe7fffb, 0x5f7804c26d02f84d, 0x0884da2f38114dff,
    0xbddfe08000434610, 0xc06f37fbffe6d77f, 0x6ff6fbc026032996, 0x36804c26f37f84de, 0x184de2df80040261,
    0x4024200404c26f00, 0x051239d7de000020, 0x12d04402613389ce, 0x6804c26f36fa0300, 0x0202013000502613,
    0x027008004c065000, 0x1820008200400000, 0xf3fbcda67ffbffc0, 0x800c26d27984de6f, 0x4de6ff09bcdfefff,
    0xf6400804c26f009c, 0x100984de01209bcd, 0x7fbc000000804c08, 0x04c26f37f80de6ff, 0xde6ff00060261368,
    0x6000804c26f00984, 0x08984de000000502, 0x404000000804c001, 0x4826d37ba0080000, 0x2012040402613780,
    0x000804c26d100010, 0x0000020204044026, 0x04100400004c0400, 0x0002000000000080, 0x6fb01945e65b7880,
    0x00004c07580980de, 0x984de01309bc5fe0, 0x4000000c04c01100, 0x8010018800013019, 0xfb10083002000000,
    0x0044c06500984de4, 0x84de800000402600, 0x500000804c081009, 0x0140980004040004, 0x00000050000c0000,
    0x004e455008000000, 0x8240002004001200, 0x10000804d01a0006, 0x0000000000004048, 0x1000000808000002,
    0x0016180020080000, 0x0000000000010040,
};

static const uint64_t iq3xxs_points[32] = {
    0x10413533600213b7, 0x100004394090b317, 0x0020200960848020, 0x010200d004004000, 0x0000031300187333,
    0x0808110320001133, 0x1008050000100005, 0x0001020000000004, 0x1a00113700021b33, 0x5000005100418393,
    0x4001080200204000, 0x0004008300000000, 0x000c110324100331, 0x0000201020200413, 0x0040020920081000,
    0x0100200002008040, 0x4000000000a0c084, 0x0004000809018100, 0x1002040004100004, 0x0000103400000000,
    0x0040080910010020, 0x0020000220002040, 0x0000100220000a10, 0x0002040000100000, 0x01000100040c0400,
    0x0000900004000080, 0x0020000400040000, 0x0000010200002000, 0x000108000020201e, 0x0100204100240020,
    0x0000040300010100, 0x0000000000001000,
};

static const uint64_t iq3s_points[64] = {
    0x92050aa5082357a7, 0x0422001022892317, 0x09000aa4112249a3, 0x228005104a052208, 0x0100020904128801,
    0x084000a208450014, 0x0200040002000a40, 0x0000110008450015, 0x040250005205ab17, 0x410005020902114b,
    0x040120090411a401, 0x0104000211820992, 0x000011440a001428, 0x0000020005020902, 0x0000005000910000,
    0x010400022002050a, 0x2980052a058a55ab, 0x0000020412248905, 0x12008802810a0092, 0x004001040a140225,
    0x2400000224090082, 0x0100080180040210, 0x0002200000020085, 0x0000010801400220, 0x020802942a04aa04,
    0x44010001000a102a, 0x0000010014010401, 0x0800208a018a1102, 0x0011040002044208, 0x0800401004200502,
    0x0000000200004000, 0x000000002005000a, 0x0100010204910411, 0x0000220821040a84, 0x010480010802210a,
    0x0000000022050a10, 0x0200000180100005, 0x00040000000200a0, 0x0001000010000800, 0x0000020801002100,
    0x1040049100041104, 0x040000000402042a, 0x0000080041080201, 0x0820021000800184, 0x0000004004010012,
    0x00000a0000400400, 0x0000000400000000, 0x0000000000040014, 0x000100000a002a00, 0x0010000000810001,
    0x0104200410000400, 0x0000000100021001, 0x0004000800200000, 0x0001000010000009, 0x0000000100000020,
    0x0000000000000a00, 0x0004100140050091, 0x0000002800100204, 0x0000020001024112, 0x0000080024000004,
    0x0000010000010822, 0x0000000400040000, 0x0000000002000004, 0x0000000000000001,
};

static const struct {
    const uint64_t *points;
    unsigned dimension, n_levels, n_points;
    bool even;
    unsigned n_distances; /* the number of smallest distances at which points are neighbours */
} rows[GRIDS] = {
    [GRID_IQ1] = {iq1_points, 8, 3, 2048, false, 3},      [GRID_IQ2_XXS] = {iq2xxs_points, 8, 3, 256, true, 2},
    [GRID_IQ2_XS] = {iq2xs_points, 8, 3, 512, true, 2},   [GRID_IQ2_S] = {iq2s_points, 8, 3, 1024, true, 1},
    [GRID_IQ3_XXS] = {iq3xxs_points, 4, 8, 256, true, 2}, [GRID_IQ3_S] = {iq3s_points, 4, 8, 512, false, 3},
};

enum { ALL_LEVELS = (2048 + 256 + 512 + 1024) * 8 + (256 + 512) * 4 };

static uint8_t all_levels[ALL_LEVELS];
static struct grid grids[GRIDS];

/* Steps to the next combination by code; returns the sum of its levels. */
static unsigned next_combination(uint8_t *levels, unsigned dimension, unsigned n_levels)
{
    unsigned sum = 0, i = 0;
    while (i < dimension && levels[i] + 1u == n_levels)
        levels[i++] = 0;
    if (i < dimension)
        levels[i]++;
    for (i = 0; i < dimension; i++)
        sum += levels[i];
    return sum;
}

static void list_points(enum grid_name name, uint8_t *to)
{
    unsigned dimension = rows[name].dimension, n_found = 0, n_seen = 0, sum = 0;
    uint8_t levels[8] = {0};
    for (; n_found < rows[name].n_points; sum = next_combination(levels, dimension, rows[name].n_levels)) {
        if (rows[name].even && sum % 2 != 0)
            continue;
        if (rows[name].points[n_seen / 64] >> n_seen % 64 & 1)
            for (unsigned i = 0, at = n_found++ * dimension; i < dimension; i++)
                to[at + i] = levels[i];
        n_seen++;
    }
}

static void make_grids(void)
{
    uint8_t *levels = all_levels;
    for (int name = 0; name < GRIDS; name++) {
        list_points((enum grid_name)name, levels);
        grids[name] = (struct grid){rows[name].dimension, rows[name].n_levels, rows[name].n_points, levels};
        levels += rows[name].n_points * rows[name].dimension;
    }
}

const struct grid *grid_of(enum grid_name name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_grids);
    return &grids[name];
}

/* Neighbours. A distance is the sum of squared differences between levels: at most 32, or 4 * 49. */

/* The contribution of each component of each point to the distance, by the combination's level:
 * squares[component][level]. */
struct squares {
    uint8_t of[8][8][GRID_MOST_POINTS];
};

enum { MOST_LANES = 16 }; /* loaded at once: the last list has room after it */

struct lists {
    uint16_t *neighbour, *packed;
    uint32_t n_neighbours, capacity;
};

static struct squares *list_squares(const struct grid *grid)
{
    struct squares *squares = memory_alloc(sizeof *squares);
    for (unsigned i = 0; i < grid->dimension; i++)
        for (unsigned level = 0; level < grid->n_levels; level++)
            for (unsigned point = 0; point < grid->n_points; point++) {
                int difference = (int)level - grid_point(grid, point)[i];
                squares->of[i][level][point] = (uint8_t)(difference * difference);
            }
    return squares;
}

/* Adds bytes, vectorized: the number of points is a multiple of 16. */
static void add_bytes(uint8_t *restrict sums, const uint8_t *restrict more, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sums[i] = (uint8_t)(sums[i] + more[i]);
}

static void find_distances(const struct grid *grid, const struct squares *squares, const uint8_t *levels,
                           uint8_t *distances)
{
    memcpy(distances, squares->of[0][levels[0]], grid->n_points);
    for (unsigned i = 1; i < grid->dimension; i++)
        add_bytes(distances, squares->of[i][levels[i]], grid->n_points);
}

/* Returns the smallest distance above `least`: those up to it become the largest by wrapping around. */
static int next_distance(const uint8_t *restrict distances, unsigned n_points, int least)
{
    uint8_t next = UINT8_MAX, below = (uint8_t)(least + 1);
    for (unsigned point = 0; point < n_points; point++) {
        uint8_t distance = (uint8_t)(distances[point] - below);
        next = distance < next ? distance : next;
    }
    return next + below;
}

static uint16_t pack_levels(const struct grid *grid, const uint8_t *levels)
{
    unsigned packed = 0, bits = grid->dimension == 8 ? 2 : 3;
    for (unsigned i = 0; i < grid->dimension; i++)
        packed |= (unsigned)levels[i] << bits * i;
    return (uint16_t)packed;
}

static void add_neighbour(struct lists *lists, const struct grid *grid, unsigned point)
{
    if (lists->n_neighbours == lists->capacity) {
        lists->capacity = lists->capacity * 2 + 32768;
        lists->neighbour = memory_resize(lists->neighbour, lists->capacity * sizeof *lists->neighbour);
        lists->packed = memory_resize(lists->packed, (lists->capacity + MOST_LANES) * sizeof *lists->packed);
    }
    lists->neighbour[lists->n_neighbours] = (uint16_t)point;
    lists->packed[lists->n_neighbours++] = pack_levels(grid, grid_point(grid, point));
}

/* Adds the points at a distance, in ascending order. Checks eight together, most often in vain. */
static void add_neighbours(struct lists *lists, const struct grid *grid, const uint8_t *distances, int distance)
{
    const uint64_t ones = 0x0101010101010101;
    for (unsigned first = 0; first < grid->n_points; first += 8) {
        uint64_t eight;
        memcpy(&eight, distances + first, sizeof eight);
        eight ^= ones * (unsigned)distance;
        if (((eight - ones) & ~eight & ones << 7) == 0)
            continue;
        for (unsigned point = first; point < first + 8; point++)
            if (distances[point] == distance)
                add_neighbour(lists, grid, point);
    }
}

static const struct grid_search *make_search(enum grid_name name)
{
    const struct grid *grid = grid_of(name);
    unsigned n_codes = grid->dimension == 8 ? 6561 : 4096;
    uint8_t levels[8] = {0}, distances[GRID_MOST_POINTS];
    struct grid_search *search = memory_alloc(sizeof *search);
    int16_t *index = memory_alloc(n_codes * sizeof *index);
    uint32_t *first = memory_alloc((n_codes + 1) * sizeof *first);
    struct lists lists = {0};
    struct squares *squares = list_squares(grid);
    memset(index, -1, n_codes * sizeof *index);
    for (unsigned point = 0; point < grid->n_points; point++)
        index[grid_code(grid, grid_point(grid, point))] = (int16_t)point;
    for (unsigned code = 0; code < n_codes; code++) {
        first[code] = lists.n_neighbours;
        if (index[code] < 0) {
            find_distances(grid, squares, levels, distances);
            int distance = -1;
            for (unsigned i = 0; i < rows[name].n_distances; i++) {
                distance = next_distance(distances, grid->n_points, distance);
                add_neighbours(&lists, grid, distances, distance);
            }
        }
        next_combination(levels, grid->dimension, grid->n_levels);
    }
    first[n_codes] = lists.n_neighbours;
    free(squares);
    *search = (struct grid_search){grid, index, first, lists.neighbour, lists.packed};
    return search;
}

/* Keeps the tables until the process ends. */
const struct grid_search *grid_search_of(enum grid_name name)
{
    static _Atomic(const struct grid_search *) made[GRIDS];
    static struct lock lock = LOCK_INITIALIZER;
    const struct grid_search *search = atomic_load_explicit(&made[name], memory_order_acquire);
    if (search != NULL)
        return search;
    attempt_lock(&lock);
    search = atomic_load_explicit(&made[name], memory_order_relaxed);
    if (search == NULL) {
        search = make_search(name);
        atomic_store_explicit(&made[name], search, memory_order_release);
    }
    attempt_unlock(&lock);
    return search;
}
