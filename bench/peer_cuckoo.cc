// The cuckoo filter of its authors (github.com/efficient/cuckoofilter), if its headers are found: its source is no part
// of this tree. It cannot grow, so it is made for the last size.
#include "bench.h"

#if __has_include(<cuckoofilter.h>)

#include <cuckoofilter.h>

namespace {

// 12 bits: two buckets of four make a rate of 8 / 4096, 0.2 %; 8 bits would make 3 %.
using Filter = cuckoofilter::CuckooFilter<uint64_t, 12>;

Filter *as(void *filter)
{
    return static_cast<Filter *>(filter);
}

void *make(size_t n, double)
{
    return new Filter(n);
}

bool add(void *filter, uint64_t key)
{
    return as(filter)->Add(key) == cuckoofilter::Ok;
}

bool has(void *filter, uint64_t key)
{
    return as(filter)->Contain(key) == cuckoofilter::Ok;
}

bool take(void *filter, uint64_t key)
{
    return as(filter)->Delete(key) == cuckoofilter::Ok;
}

size_t bytes(void *filter)
{
    return as(filter)->SizeInBytes();
}

void release(void *filter)
{
    delete as(filter);
}

} // namespace

const struct grower grower_cuckoo = {"cuckoo filter, sized", make, add, has, take, bytes, release};

#else
const struct grower grower_cuckoo = {"cuckoo filter, sized", nullptr, nullptr, nullptr,
                                     nullptr,                nullptr, nullptr};
#endif
