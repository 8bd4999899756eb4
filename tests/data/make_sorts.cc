// Prints the table of tests/unit/quant/arithmetic/std_sort.c: what libstdc++ makes of its keys.
//     g++ -O2 -o make_sorts tests/data/make_sorts.cc && ./make_sorts
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

using item = std::pair<uint32_t, uint32_t>;

static uint32_t key(unsigned kind, uint32_t i, uint32_t n)
{
    switch (kind) {
    case 0: return i * 7919 % 37;
    case 1: return i < n / 2 ? i : n - i;
    case 2: return i * 2654435761u >> 12;
    default: return 5;
    }
}

static uint64_t hash(const std::vector<item> &items, size_t from, size_t to)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = from; i < to; i++)
        sum = (sum ^ items[i].second) * 1099511628211u;
    return sum;
}

static uint64_t hash_sorted(std::vector<item> items, size_t k)
{
    std::sort(items.begin(), items.begin() + k, [](const item &a, const item &b) { return a.second < b.second; });
    return hash(items, 0, k);
}

int main()
{
    auto less = [](const item &a, const item &b) { return a.first < b.first; };
    for (unsigned kind = 0; kind < 4; kind++)
        for (uint32_t n : {1, 2, 3, 15, 16, 17, 100, 1000, 20000}) {
            std::vector<item> items;
            for (uint32_t i = 0; i < n; i++)
                items.push_back({key(kind, i, n), i});
            std::vector<item> sorted = items, few = items, many = items;
            size_t k = n / 100 + 1, position = n / 3 + 1;
            std::sort(sorted.begin(), sorted.end(), less);
            if (k * 64 <= n)
                std::partial_sort(few.begin(), few.begin() + k, few.end(), less);
            else
                std::nth_element(few.begin(), few.begin() + k - 1, few.end(), less);
            std::nth_element(many.begin(), many.begin() + position - 1, many.end(), less);
            printf("    {%u, %u, %zu, %zu, 0x%016llx, 0x%016llx, 0x%016llx, 0x%016llx},\n", kind, n, k, position,
                   (unsigned long long)hash(sorted, 0, n), (unsigned long long)hash_sorted(sorted, position),
                   (unsigned long long)hash_sorted(few, k), (unsigned long long)hash_sorted(many, position));
        }
}
