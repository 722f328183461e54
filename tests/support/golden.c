/* See golden.h. */
#include "golden.h"

#include <dirent.h>
#include <sys/stat.h>

#include "api/api.h"
#include "base/bytes.h"
#include "harness.h"

/* ---- reading --------------------------------------------------------------------------------- */

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

static tamis_error open_file(struct set **set, enum kind kind, const char *path,
                             const tamis_open_options *o, tamis_reason *reason)
{
    tamis_kind of = kind == KIND_FILTER ? TAMIS_KIND_FILTER : TAMIS_KIND_RECORDS;
    return set_file_open(set, of, path, o, reason);
}

static void check_answers(const char *stem, struct set *set, golden_has has, unsigned least)
{
    char path[GOLDEN_PATH], line[2000], asked[2000];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s.txt", stem);
    FILE *file = fopen(path, "r");
    if (!CHECK_MSG(file != NULL, "%s", path))
        return;
    for (; fgets(line, sizeof line, file); n++) {
        line[strcspn(line, "\n")] = 0;
        bool want = strncmp(line, "maybe ", 6) == 0;
        strcpy(asked, line + (want ? 6 : 3));
        CHECK_MSG(has(set, asked) == want, "%s: %s", stem, line);
    }
    CHECK_MSG(n >= least, "%s: %u lines", path, n);
    fclose(file);
}

void golden_is_read(const char *stem, enum kind kind, golden_has has, unsigned least)
{
    char path[GOLDEN_PATH];
    struct set *set = NULL;
    tamis_reason reason = {0};
    snprintf(path, sizeof path, "%s.key", stem);
    struct bytes key = file_bytes(path);
    snprintf(path, sizeof path, "%s.tamis", stem);
    struct bytes bytes = file_bytes(path);
    tamis_open_options o = {.key = key.len == TAMIS_KEY_LEN ? key.data : NULL};
    CHECK_MSG(tamis_file_verify(path, &reason) == TAMIS_OK, "%s", reason.text);
    if (CHECK_MSG(set_decode(&set, kind, &bytes, &o, &reason) == TAMIS_OK, "%s: %s", stem,
                  reason.text)) {
        struct bytes again = bytes_of_set(set, 0);
        CHECK_MSG(bytes_equal(&bytes, &again), "%s", stem);
        check_answers(stem, set, has, least);
        bytes_free(&again);
        set_free(set);
    }
    if (CHECK_MSG(open_file(&set, kind, path, &o, &reason) == TAMIS_OK, "%s", reason.text)) {
        check_answers(stem, set, has, least);
        set_free(set);
    }
    bytes_free(&bytes), bytes_free(&key);
}

void golden_is_refused(const char *stem, enum kind kind)
{
    char path[GOLDEN_PATH], want[80];
    struct set *set = NULL;
    tamis_reason reason = {0};
    snprintf(path, sizeof path, "%s.tamis", stem);
    snprintf(want, sizeof want, "TAMIS_%s", strrchr(stem, '.') + 1);
    struct bytes bytes = file_bytes(path);
    tamis_error e = set_decode(&set, kind, &bytes, NULL, &reason);
    CHECK_MSG(strcmp(tamis_error_name(e), want) == 0, "%s: %s: %s", path, tamis_error_name(e),
              reason.text);
    e = open_file(&set, kind, path, NULL, &reason);
    CHECK_MSG(strcmp(tamis_error_name(e), want) == 0, "%s: %s: %s", path, tamis_error_name(e),
              reason.text);
    CHECK(reason.offset <= bytes.len && strstr(reason.text, ": "));
    bytes_free(&bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

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
