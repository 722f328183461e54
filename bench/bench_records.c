/*
 * Records for bench/find.py: files of web server records, about 115 bytes each as JSONL, in which
 * users and addresses are drawn by Zipf's law from 100,000 each (exponent 1). Of 50,000 records, the
 * values of rank 3,000 and better are in most files, and a pair of two of rank 500 to 3,000 in
 * almost none.
 *
 *     bench_records FOLDER FILES RECORDS csv|jsonl[.zst]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static uint64_t state;

static uint64_t draw(void)
{
    return bench_mix(++state);
}

static int write_file(const char *path, const char *format, uint64_t number, uint64_t records)
{
    char command[4200];
    int packed = strstr(format, ".zst") != NULL, json = strncmp(format, "jsonl", 5) == 0;
    snprintf(command, sizeof command, "zstd -q -f -o '%s'", path);
    FILE *out = packed ? popen(command, "w") : fopen(path, "w");
    if (!out)
        return 1;
    state = number * 1000000007;
    if (!json)
        fputs("ts,ip,user,path,status,bytes\n", out);
    for (uint64_t i = 0; i < records; i++) {
        unsigned ip = bench_zipf(draw(), BENCH_NAMES), user = bench_zipf(draw(), BENCH_NAMES);
        uint64_t x = draw();
        unsigned second = (unsigned)(i % 86400), a = ip / 250, b = ip % 250;
        fprintf(
            out,
            json
                ? "{\"ts\":\"2024-05-01T%02u:%02u:%02uZ\",\"ip\":\"10.%u.%u.%u\",\"user\":\"u%05u\","
                  "\"path\":\"/shop/item/%u\",\"status\":%u,\"bytes\":%u}\n"
                : "2024-05-01T%02u:%02u:%02uZ,10.%u.%u.%u,u%05u,/shop/item/%u,%u,%u\n",
            second / 3600, second / 60 % 60, second % 60, a / 250, a % 250, b, user,
            (unsigned)(x % 5000), x >> 20 & 7 ? 200 : 404, (unsigned)(x >> 40) % 100000);
    }
    return packed ? pclose(out) : fclose(out);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 5) {
        fprintf(stderr, "bench_records FOLDER FILES RECORDS csv|jsonl[.zst]\n");
        return 2;
    }
    uint64_t files = strtoull(argv[2], NULL, 10), records = strtoull(argv[3], NULL, 10);
    for (uint64_t i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/%05llu.%s", argv[1], (unsigned long long)i, argv[4]);
        if (write_file(path, argv[4], i, records) != 0) {
            fprintf(stderr, "cannot write %s\n", path);
            return 1;
        }
    }
    return 0;
}
