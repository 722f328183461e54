// RocksDB's full filter (FastLocalBloom under XXH3), through the library that Debian ships. Its
// headers only name the builder and the reader of a filter, so their interfaces are declared here as
// the library (7.8) has them.
#include "bench.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>

#include <cmath>
#include <memory>

namespace ROCKSDB_NAMESPACE {
class FilterBitsBuilder {
  public:
    virtual ~FilterBitsBuilder() {}
    virtual void AddKey(const Slice &key) = 0;
    virtual size_t EstimateEntriesAdded() = 0;
    virtual Slice Finish(std::unique_ptr<const char[]> *buf) = 0;
};
class FilterBitsReader {
  public:
    virtual ~FilterBitsReader() {}
    virtual bool MayMatch(const Slice &entry) = 0;
    virtual void MayMatch(int n, Slice **keys, bool *may_match) = 0;
};
} // namespace ROCKSDB_NAMESPACE

using namespace ROCKSDB_NAMESPACE;

namespace {

struct Filter {
    std::unique_ptr<const FilterPolicy> policy;
    std::unique_ptr<const char[]> data;
    size_t size = 0;
    std::unique_ptr<FilterBitsReader> reader;
};

// The bits per key that give the rate, as RocksDB's own blocks do: searched by building would take
// long, so by the published table of its layout (512-bit lines, k = 0.69 bits).
double bits_for(double fpp)
{
    auto rate = [](double bits) {
        int k = bits <= 2.08   ? 1
                : bits <= 3.58 ? 2
                : bits <= 5.10 ? 3
                : bits <= 6.64 ? 4
                : bits <= 8.30 ? 5
                : bits <= 10.07 ? 6
                : bits <= 11.72 ? 7
                : bits <= 14.00 ? 8
                : bits <= 16.05 ? 9
                : bits <= 18.30 ? 10
                : bits <= 22.00 ? 11
                                : 12;
        double mean = 512 / bits, sum = 0, term = std::exp(-mean);
        for (int j = 0; j < 400; j++) {
            sum += term * std::pow(1 - std::pow(1 - 1 / 512.0, k * j), k);
            term *= mean / (j + 1);
        }
        return sum;
    };
    double low = 1, high = 40;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        (rate(middle) > fpp ? low : high) = middle;
    }
    return high;
}

void *make(size_t n, double fpp, const uint64_t *keys)
{
    auto *f = new Filter;
    f->policy.reset(NewBloomFilterPolicy(bits_for(fpp)));
    BlockBasedTableOptions options;
    options.format_version = 5;
    FilterBuildingContext context(options);
    std::unique_ptr<FilterBitsBuilder> builder(f->policy->GetBuilderWithContext(context));
    for (size_t i = 0; i < n; i++)
        builder->AddKey(Slice(reinterpret_cast<const char *>(&keys[i]), 8));
    Slice built = builder->Finish(&f->data);
    f->size = built.size();
    f->reader.reset(f->policy->GetFilterBitsReader(built));
    return f;
}

size_t bytes(void *filter)
{
    return static_cast<Filter *>(filter)->size;
}

bool has(void *filter, uint64_t key)
{
    return static_cast<Filter *>(filter)->reader->MayMatch(
        Slice(reinterpret_cast<const char *>(&key), 8));
}

void has_many(void *filter, const uint64_t *keys, size_t n, uint8_t *found)
{
    constexpr size_t kBatch = 32; // the size of its own MultiGet batches
    FilterBitsReader *reader = static_cast<Filter *>(filter)->reader.get();
    Slice slices[kBatch];
    Slice *pointers[kBatch];
    bool match[kBatch];
    for (size_t i = 0; i < n; i += kBatch) {
        size_t some = n - i < kBatch ? n - i : kBatch;
        for (size_t j = 0; j < some; j++) {
            slices[j] = Slice(reinterpret_cast<const char *>(&keys[i + j]), 8);
            pointers[j] = &slices[j];
        }
        reader->MayMatch(static_cast<int>(some), pointers, match);
        for (size_t j = 0; j < some; j++)
            found[i + j] = match[j];
    }
}

void release(void *filter)
{
    delete static_cast<Filter *>(filter);
}

} // namespace

extern "C" const struct peer peer_rocksdb = {"rocksdb", make, bytes, has, has_many, release};
