/* See golden.h. */
#include "golden.h"

#include <dirent.h>
#include <sys/stat.h>

#include "bytes.h"
#include "format.h"
#include "harness.h"

unsigned golden_each(const char *folder, void (*run)(const char *stem))
{
    char path[GOLDEN_PATH - 400];
    static const char ending[] = ".tamis";
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/tests/golden/%s", harness_root(), folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name), end = sizeof ending - 1;
        if (len <= end || strcmp(entry->d_name + len - end, ending) != 0)
            continue;
        char stem[GOLDEN_PATH - 100];
        snprintf(stem, sizeof stem, "%s/%.*s", path, (int)(len - end), entry->d_name);
        run(stem);
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

const char *golden_folder(void)
{
    const char *folder = getenv("TAMIS_GOLDEN_WRITE");
    return folder && *folder ? folder : NULL;
}

void golden_write(const char *name, const char *ending, const void *data, size_t len)
{
    char path[GOLDEN_PATH];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s%s", golden_folder(), name, ending);
    if (stat(path, &st) == 0)
        return;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, len, file) != len || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

uint64_t golden_section(const struct bytes *bytes, uint32_t type)
{
    uint64_t table = BODY_AT + get_u64(bytes->data + 32);
    for (uint32_t i = 0; i < get_u32(bytes->data + 40); i++)
        if (get_u32(bytes->data + table + 24 * i) == type)
            return get_u64(bytes->data + table + 24 * i + 8);
    return 0;
}

void golden_write_bad(const struct bytes *good, const char *folder, const char *name, uint64_t at,
                      uint8_t by, bool fix)
{
    struct bytes bad = {0};
    char path[128];
    bytes_write(&bad, good->data, good->len);
    bad.data[at] = (uint8_t)(bad.data[at] + by);
    if (fix)
        bytes_repair(&bad);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    golden_write(path, ".tamis", bad.data, bad.len);
    bytes_free(&bad);
}
