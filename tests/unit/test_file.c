/* Files: mapped, loaded and original answer alike; whatever happens while saving, the old file or the
 * new one is whole; two writers do not lose each other's keys.
 */
#define _GNU_SOURCE /* renameat2 */

#include "format/format.h"
#include "os/file.h"
#include "harness.h"
#include "histories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What the library calls, made to fail: syncing folders, and a kill just before the rename. */
static bool folders_fail, rename_kills;

int fsync(int fd)
{
    struct stat st;
    if (folders_fail && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EIO;
        return -1;
    }
    return fdatasync(fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    if (rename_kills)
        raise(SIGKILL);
    return renameat2(from_folder, from, to_folder, to, 0);
}

static tamis_open_options opening(struct history *h)
{
    return (tamis_open_options){.clock = history_clock, .clock_context = h};
}

static void write_file(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wb");
    if (CHECK(file != NULL)) {
        CHECK(fwrite(data, 1, len, file) == len);
        fclose(file);
    }
}

static unsigned files_in(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}

static tamis_filter *some_filter(uint64_t keys, const char *prefix)
{
    tamis_options o = {.capacity = 1000, .key = (const uint8_t *)"0123456789abcdef"};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < keys; i++) {
        char key[40];
        int len = snprintf(key, sizeof key, "%s%" PRIu64, prefix, i);
        CHECK(tamis_filter_add(f, key, (size_t)len, NULL) == TAMIS_OK);
    }
    return f;
}

/* ---- the same answers ------------------------------------------------------------------------ */

/* A mapped filter can be asked, saved again, copied, and never changed. */
static void check_mapped(const tamis_filter *f, tamis_filter *mapped, const struct bytes *bytes)
{
    tamis_filter_facts info, original;
    tamis_filter *clone = NULL;
    tamis_filter_info(mapped, &info);
    tamis_filter_info(f, &original);
    CHECK(info.read_only && info.bytes == bytes->len);
    CHECK(info.items == original.items && info.pending == original.pending);
    CHECK(info.fill == original.fill && info.distinct == original.distinct);
    CHECK(history_compare(f, mapped) == 0);
    CHECK(tamis_filter_add(mapped, "x", 1, NULL) == TAMIS_EREADONLY);
    CHECK(tamis_filter_clear(mapped) == TAMIS_EREADONLY);
    CHECK(tamis_filter_fold(mapped, 0, NULL) == TAMIS_EREADONLY);
    CHECK(tamis_filter_encoded_size(mapped, 0) == bytes->len);
    struct bytes again = bytes_of(mapped, 0);
    CHECK(bytes_equal(bytes, &again));
    bytes_free(&again);
    struct bytes x = bytes_of(mapped, TAMIS_SAVE_NO_KEY), y = bytes_of(f, TAMIS_SAVE_NO_KEY);
    CHECK(bytes_equal(&x, &y));
    bytes_free(&x), bytes_free(&y);
    x = bytes_of(mapped, TAMIS_SAVE_BITS_ONLY), y = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
    CHECK(bytes_equal(&x, &y));
    bytes_free(&x), bytes_free(&y);
    if (CHECK(tamis_filter_clone(&clone, mapped) == TAMIS_OK)) {
        tamis_error e = tamis_filter_add(clone, "x", 1, NULL);
        bool left = info.deletable && info.growth != TAMIS_SMOOTH; /* counters, in the file */
        CHECK(left ? e == TAMIS_EREADONLY : e == TAMIS_OK || e == TAMIS_EFULL);
        tamis_filter_free(clone);
    }
}

TEST(mapped_loaded_and_original_answer_alike)
{
    uint64_t seed = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(4u, 40u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h;
            tamis_filter *f = history_new(&h, kind, seed + round), *mapped = NULL, *loaded = NULL;
            tamis_open_options o = opening(&h);
            tamis_reason reason = {0};
            history_steps(&h, f, 35);
            struct bytes bytes = bytes_of(f, 0);
            CHECK(tamis_filter_save(f, "filter.tamis", 0, &reason) == TAMIS_OK);
            struct bytes saved = file_bytes("filter.tamis");
            CHECK(bytes_equal(&bytes, &saved));
            CHECK(tamis_file_verify("filter.tamis", &reason) == TAMIS_OK);
            if (CHECK_MSG(tamis_filter_open(&mapped, "filter.tamis", &o, &reason) == TAMIS_OK, "%s",
                          reason.text))
                check_mapped(f, mapped, &bytes);
            if (CHECK(tamis_filter_load(&loaded, "filter.tamis", &o, &reason) == TAMIS_OK)) {
                struct bytes again = bytes_of(loaded, 0);
                CHECK(bytes_equal(&bytes, &again));
                bytes_free(&again);
            }
            CHECK(unlink("filter.tamis") == 0); /* the mapping stays */
            CHECK(history_compare(f, mapped) == 0);
            bytes_free(&bytes), bytes_free(&saved);
            tamis_filter_free(f), tamis_filter_free(mapped), tamis_filter_free(loaded);
        }
    CHECK(files_in(".") == 0);
}

/* To open a large file is not to read it; what is asked is right, and damage is found when looked for. */
TEST(large_files_are_open_at_once)
{
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 20000000, .unique = 1, .deletable = 1};
    tamis_filter *f = NULL, *mapped = NULL;
    tamis_reason reason = {0};
    if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
        return;
    for (unsigned i = 0; i < HISTORY_KEYS; i++) {
        char key[24];
        CHECK(tamis_filter_add(f, key, history_key(i, key), NULL) == TAMIS_OK);
    }
    CHECK_MSG(tamis_filter_save(f, "large.tamis", 0, &reason) == TAMIS_OK, "%s", reason.text);
    struct rusage before, after;
    CHECK(getrusage(RUSAGE_SELF, &before) == 0);
    CHECK(tamis_filter_open(&mapped, "large.tamis", NULL, &reason) == TAMIS_OK);
    CHECK(getrusage(RUSAGE_SELF, &after) == 0);
    tamis_filter_facts info;
    tamis_filter_info(mapped, &info);
    long faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
    /* the kernel maps at most 16 pages of 4 KiB at a fault: more would be the payload */
    CHECK_MSG(faults < (long)(info.bytes >> 18), "%ld page faults of %" PRIu64 " bytes", faults,
              info.bytes);
    CHECK(history_compare(f, mapped) == 0);
    tamis_filter_free(mapped);
    int fd = open("large.tamis", O_RDWR);
    uint8_t byte = 1;
    CHECK(pwrite(fd, &byte, 1, (off_t)info.bytes / 2) == 1);
    close(fd);
    CHECK(tamis_filter_open(&mapped, "large.tamis", NULL, NULL) == TAMIS_OK);
    tamis_filter_free(mapped);
    tamis_open_options verify = {.verify = true};
    CHECK(tamis_filter_open(&mapped, "large.tamis", &verify, &reason) == TAMIS_ECHECKSUM);
    CHECK(reason.offset <= info.bytes / 2 && reason.offset + PAGE > info.bytes / 2);
    CHECK(tamis_file_verify("large.tamis", &reason) == TAMIS_ECHECKSUM);
    CHECK(tamis_filter_load(&mapped, "large.tamis", NULL, &reason) == TAMIS_ECHECKSUM);
    CHECK(strstr(reason.text, "large.tamis: the checksum of bytes") != NULL);
    tamis_filter_free(f);
    /* What answers depend on besides the bits is checked all the same. */
    struct bytes bytes = file_bytes("large.tamis");
    struct container c;
    struct head head;
    CHECK(set_open(&c, &head, KIND_FILTER, bytes.data, bytes.len, NULL) == TAMIS_OK);
    uint64_t ones = container_section(&c, c.sections - 1).offset;
    bytes.data[ones + 5] = 1; /* 2^40 of them */
    CHECK(bytes_to_file(&bytes, "large.tamis"));
    CHECK(tamis_filter_open(&mapped, "large.tamis", NULL, &reason) == TAMIS_ECHECKSUM);
    CHECK(reason.offset == ones);
    bytes_repair(&bytes);
    CHECK(bytes_to_file(&bytes, "large.tamis"));
    CHECK(tamis_filter_open(&mapped, "large.tamis", NULL, &reason) == TAMIS_EFORMAT);
    CHECK(reason.offset == ones && strstr(reason.text, "more bits set than there are"));
    bytes_free(&bytes);
    unlink("large.tamis");
}

/* ---- names and rights ------------------------------------------------------------------------ */

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(a_file_with_the_key_is_private)
{
    tamis_filter *f = some_filter(10, "k");
    mode_t before = umask(022);
    CHECK(tamis_filter_save(f, "a", 0, NULL) == TAMIS_OK);
    CHECK(mode_of("a") == 0600);
    CHECK(tamis_filter_save(f, "a", TAMIS_SAVE_NO_KEY, NULL) == TAMIS_OK);
    CHECK(mode_of("a") == 0644);
    umask(077);
    CHECK(unlink("a") == 0 && tamis_filter_save(f, "a", TAMIS_SAVE_NO_KEY, NULL) == TAMIS_OK);
    CHECK(mode_of("a") == 0600);
    umask(before);
    tamis_reason reason;
    tamis_filter *mapped;
    CHECK(tamis_filter_open(&mapped, "a", NULL, &reason) == TAMIS_EKEY);
    tamis_open_options o = {.key = (const uint8_t *)"0123456789abcdef"};
    if (CHECK(tamis_filter_open(&mapped, "a", &o, &reason) == TAMIS_OK)) {
        CHECK(tamis_filter_has(mapped, "k3", 2));
        tamis_filter_free(mapped);
    }
    CHECK(tamis_file_verify("a", &reason) == TAMIS_OK); /* needs no key */
    unlink("a");
    tamis_filter_free(f);
}

TEST(a_file_passes_on_who_may_use_it)
{
    tamis_filter *f = some_filter(10, "k");
    struct stat st;
    mode_t before = umask(077);
    CHECK(tamis_filter_save(f, "a", 0, NULL) == TAMIS_OK && chmod("a", 0640) == 0);
    CHECK(tamis_filter_save(f, "a", 0, NULL) == TAMIS_OK);
    CHECK(mode_of("a") == 0640);
    CHECK(tamis_filter_save(f, "b", TAMIS_SAVE_NO_KEY, NULL) == TAMIS_OK && chmod("b", 0664) == 0);
    CHECK(tamis_filter_save(f, "b", TAMIS_SAVE_NO_KEY, NULL) == TAMIS_OK);
    CHECK(mode_of("b") == 0664);
    CHECK(tamis_filter_save(f, "b", 0, NULL) == TAMIS_OK);
    CHECK(mode_of("b") == 0600); /* the key was not there before */
    FILE *text = fopen("c", "w");
    CHECK(text && fputs("no structure", text) >= 0 && fclose(text) == 0 && chmod("c", 0644) == 0);
    CHECK(tamis_filter_save(f, "c", 0, NULL) == TAMIS_OK);
    CHECK(mode_of("c") == 0600);
    if (chown("a", 65534, 65533) == 0) { /* a privileged user's save leaves it to its owner */
        CHECK(tamis_filter_save(f, "a", 0, NULL) == TAMIS_OK);
        CHECK(stat("a", &st) == 0 && st.st_uid == 65534 && st.st_gid == 65533);
        CHECK(mode_of("a") == 0640);
    }
    umask(before);
    unlink("a"), unlink("b"), unlink("c");
    tamis_filter_free(f);
}

TEST(links_are_followed)
{
    tamis_filter *f = some_filter(10, "k");
    struct stat st;
    CHECK(mkdir("there", 0700) == 0);
    CHECK(symlink("there/real.tamis", "link") == 0 && symlink("link", "link2") == 0);
    CHECK(tamis_filter_save(f, "link2", 0, NULL) == TAMIS_OK); /* of what does not exist yet */
    CHECK(lstat("link", &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(tamis_file_verify("there/real.tamis", NULL) == TAMIS_OK);
    CHECK(tamis_filter_save(f, "link", 0, NULL) == TAMIS_OK);
    CHECK(lstat("link", &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(files_in("there") == 1);
    CHECK(symlink("loop", "loop") == 0);
    tamis_reason reason;
    CHECK(tamis_filter_save(f, "loop", 0, &reason) == TAMIS_EIO && reason.system_error == ELOOP);
    unlink("loop"), unlink("link"), unlink("link2"), unlink("there/real.tamis");
    CHECK(rmdir("there") == 0);
    tamis_filter_free(f);
}

static void expect_io(tamis_error e, const tamis_reason *reason, int error, const char *text)
{
    CHECK_MSG(e == TAMIS_EIO && reason->system_error == error && strstr(reason->text, text),
              "%s, errno %d: %s", tamis_error_name(e), reason->system_error, reason->text);
}

TEST(every_reason_names_the_file)
{
    tamis_filter *f = some_filter(10, "k"), *out;
    tamis_reason r;
    expect_io(tamis_filter_open(&out, "none", NULL, &r), &r, ENOENT, "none: No such file");
    expect_io(tamis_filter_load(&out, "", NULL, &r), &r, ENOENT, "No such file");
    expect_io(tamis_file_verify("none/none", &r), &r, ENOENT, "none/none: No such file");
    expect_io(tamis_filter_open(&out, ".", NULL, &r), &r, EISDIR, ".: Is a directory");
    expect_io(tamis_filter_save(f, ".", 0, &r), &r, EISDIR, ".: Is a directory");
    expect_io(tamis_filter_save(f, "none/x", 0, &r), &r, ENOENT, "writing none/x: No such file");
    expect_io(tamis_filter_save(f, "", 0, &r), &r, ENOENT, "No such file");
    expect_io(tamis_filter_open(&out, "/dev/null", NULL, &r), &r, 0, "/dev/null: not a regular");
    expect_io(tamis_filter_save(f, "/dev/null", 0, &r), &r, 0, "/dev/null: not a regular file");
    CHECK(mkfifo("fifo", 0600) == 0);
    expect_io(tamis_filter_open(&out, "fifo", NULL, &r), &r, 0, "fifo: not a regular file");
    unlink("fifo");
    write_file("empty", "", 0);
    CHECK(tamis_filter_open(&out, "empty", NULL, &r) == TAMIS_EFORMAT);
    CHECK(strstr(r.text, "empty: the file is empty") != NULL);
    write_file("text", "Hello, world. This is not a filter at all.\n", 43);
    CHECK(tamis_filter_open(&out, "text", NULL, &r) == TAMIS_EFORMAT);
    CHECK(strstr(r.text, "text: not a tamis structure") != NULL);
    struct bytes patch = {0};
    CHECK(tamis_filter_diff(f, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
    write_file("patch", patch.data, patch.len);
    CHECK(tamis_filter_open(&out, "patch", NULL, &r) == TAMIS_EKIND && strstr(r.text, "a patch"));
    CHECK(tamis_file_verify("patch", &r) == TAMIS_OK);
    patch.data[60] ^= 1;
    write_file("patch", patch.data, patch.len);
    CHECK(tamis_file_verify("patch", &r) == TAMIS_ECHECKSUM);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[300] = 0;
    expect_io(tamis_filter_save(f, longest, 0, &r), &r, ENAMETOOLONG, "File name too long");
    longest[300] = 'x', longest[4999] = 0;
    expect_io(tamis_filter_save(f, longest, 0, &r), &r, ENAMETOOLONG, "File name too long");
    bytes_free(&patch);
    unlink("empty"), unlink("text"), unlink("patch");
    CHECK(files_in(".") == 0);
    tamis_filter_free(f);
}

/* ---- disasters ------------------------------------------------------------------------------- */

/* The child's status; what it CHECKs is printed, and counts as its failure. */
static int in_child(void (*run)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        atomic_store(&harness.failed_checks, 0);
        run();
        fflush(stdout);
        _exit(atomic_load(&harness.failed_checks) != 0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static void save_into_read_only(void)
{
    tamis_filter *f = some_filter(5, "k");
    tamis_reason r;
    CHECK(geteuid() != 0 || setuid(65534) == 0); /* root may write anywhere */
    expect_io(tamis_filter_save(f, "closed/f", 0, &r), &r, EACCES, "writing closed/f: Permission");
    tamis_lock *lock;
    expect_io(tamis_file_lock(&lock, "closed/f", NULL, &r), &r, EACCES, "locking closed/f");
}

TEST(a_folder_closed_to_us)
{
    CHECK(chmod(".", 0755) == 0 && mkdir("closed", 0755) == 0);
    tamis_filter *f = some_filter(7, "old");
    CHECK(tamis_filter_save(f, "closed/f", 0, NULL) == TAMIS_OK);
    CHECK(chmod("closed", 0555) == 0);
    CHECK(in_child(save_into_read_only) == 0);
    CHECK(chmod("closed", 0755) == 0);
    CHECK(files_in("closed") == 1 && tamis_file_verify("closed/f", NULL) == TAMIS_OK);
    unlink("closed/f");
    CHECK(rmdir("closed") == 0);
    tamis_filter_free(f);
}

/* Saves a filter of a MiB where half of that is left. */
static void save_onto_full(void)
{
    tamis_filter *f = some_filter(7, "old"), *large, *again;
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 800000};
    tamis_reason r;
    if (!CHECK(tamis_filter_new(&large, &o, NULL) == TAMIS_OK))
        return;
    CHECK_MSG(tamis_filter_save(f, "small/f", 0, &r) == TAMIS_OK, "%s", r.text);
    tamis_error e = tamis_filter_save(large, "small/f", 0, &r);
    CHECK_MSG(e == TAMIS_EIO && (r.system_error == ENOSPC || r.system_error == EFBIG) &&
                  strstr(r.text, "writing small/f: "),
              "%s: %s", tamis_error_name(e), r.text);
    CHECK(files_in("small") == 1);
    if (CHECK(tamis_filter_load(&again, "small/f", NULL, &r) == TAMIS_OK)) {
        CHECK(tamis_filter_equal(f, again));
        tamis_filter_free(again);
    }
    tamis_filter_free(f);
    tamis_filter_free(large);
}

/* Files may have half a MiB from now on. */
static void limit_sizes(void)
{
    struct rlimit limit = {500000, 500000};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void save_past_limit(void)
{
    limit_sizes();
    save_onto_full();
}

TEST(a_full_disk_leaves_the_old_file)
{
    CHECK(mkdir("small", 0700) == 0);
    CHECK(in_child(save_past_limit) == 0);
    unlink("small/f");
    if (mount("none", "small", "tmpfs", 0, "size=512k") == 0) {
        save_onto_full();
        CHECK(umount("small") == 0);
    } else {
        printf("no tmpfs can be mounted here: the limit on sizes has to do\n");
    }
    CHECK(rmdir("small") == 0);
}

/* Where /proc is not there, the new file has a name from the start. */
static void save_without_proc(void)
{
    if (chroot("jail") != 0 || chdir("/") != 0) {
        printf("only root can take /proc away: not tested\n");
        return;
    }
    save_onto_full();
    tamis_filter *f = some_filter(9, "new");
    tamis_reason r;
    CHECK_MSG(tamis_filter_save(f, "small/f", 0, &r) == TAMIS_OK, "%s", r.text);
    CHECK(mode_of("small/f") == 0600 && tamis_file_verify("/small/f", NULL) == TAMIS_OK);
    CHECK(files_in("small") == 1);
    tamis_filter_free(f);
}

static void save_without_proc_past_limit(void)
{
    limit_sizes();
    save_without_proc();
}

TEST(without_proc_saving_works_too)
{
    CHECK(mkdir("jail", 0755) == 0 && mkdir("jail/small", 0755) == 0);
    CHECK(in_child(save_without_proc_past_limit) == 0);
    unlink("jail/small/f");
    CHECK(rmdir("jail/small") == 0 && rmdir("jail") == 0);
}

/* The new file is there: nobody may be told that nothing has changed. */
TEST(a_folder_that_cannot_be_synced)
{
    tamis_filter *f = some_filter(9, "new"), *out;
    tamis_reason r;
    folders_fail = true;
    CHECK(tamis_filter_save(f, "f", 0, &r) == TAMIS_ESYNC);
    folders_fail = false;
    CHECK(r.system_error == EIO && strstr(r.text, "syncing"));
    if (CHECK(tamis_filter_open(&out, "f", NULL, NULL) == TAMIS_OK)) {
        CHECK(tamis_filter_equal(f, out));
        tamis_filter_free(out);
    }
    tamis_filter_free(f);
    unlink("f");
    CHECK(files_in(".") == 0);
}

static void save_and_be_killed(void)
{
    tamis_filter *f = some_filter(9, "new");
    rename_kills = true;
    tamis_filter_save(f, "f", 0, NULL);
}

/* At the only moment when the new file, with the key in it, has a name: the next save removes it. But
   not one that is being written. */
TEST(killed_before_the_rename)
{
    tamis_filter *f = some_filter(5, "k");
    struct beside other;
    CHECK(tamis_filter_save(f, "f", 0, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < 12; i++) {
        int status = in_child(save_and_be_killed);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK_MSG(files_in(".") == 2, "%u files", files_in("."));
    }
    CHECK(tamis_filter_save(f, "f", 0, NULL) == TAMIS_OK);
    CHECK_MSG(files_in(".") == 1, "%u files", files_in("."));
    CHECK(beside_open(&other, "f", BESIDE_PRIVATE, NULL) == TAMIS_OK);
    CHECK(tamis_filter_save(f, "f", 0, NULL) == TAMIS_OK);
    CHECK(beside_replace(&other, "f", NULL) == TAMIS_OK);
    beside_close(&other);
    tamis_filter_free(f);
    unlink("f");
    CHECK(files_in(".") == 0);
}

/* Saves versions 1, 2, 3 ... until it is killed, and says in a file which one is done. */
/* The folder is replaced by a link while the file is written: the file stays with the folder. */
TEST(a_folder_swapped_for_a_link)
{
    struct beside file;
    CHECK(mkdir("mine", 0700) == 0 && mkdir("theirs", 0700) == 0);
    CHECK(beside_open(&file, "mine/f", BESIDE_PRIVATE, NULL) == TAMIS_OK);
    CHECK(rename("mine", "moved") == 0 && symlink("theirs", "mine") == 0);
    CHECK(beside_replace(&file, "mine/f", NULL) == TAMIS_OK);
    beside_close(&file);
    CHECK(files_in("theirs") == 0 && files_in("moved") == 1);
    unsigned strange = BESIDE_PRIVATE | BESIDE_STRANGE | BESIDE_INNER;
    tamis_reason r;
    CHECK(beside_open(&file, "mine/g", strange, &r) == TAMIS_EIO && r.system_error == ENOTDIR);
    beside_close(&file);
    CHECK(files_in("theirs") == 0);
    CHECK(unlink("moved/f") == 0 && unlink("mine") == 0);
    CHECK(rmdir("moved") == 0 && rmdir("theirs") == 0);
}

static void save_for_ever(int report)
{
    tamis_options o = {.growth = TAMIS_SCALABLE, .capacity = 4000, .deletable = true};
    tamis_filter *f;
    tamis_lock *lock;
    if (tamis_filter_new(&f, &o, NULL) != TAMIS_OK)
        _exit(1);
    for (uint64_t version = 1;; version++) {
        for (uint64_t i = 100 * (version - 1); i < 100 * version; i++)
            if (tamis_filter_add(f, &i, sizeof i, NULL) != TAMIS_OK)
                _exit(1);
        if (tamis_file_lock(&lock, "killed", NULL, NULL) != TAMIS_OK)
            _exit(1);
        if (tamis_filter_save(f, "killed", 0, NULL) != TAMIS_OK)
            _exit(1);
        if (pwrite(report, &version, sizeof version, 0) != sizeof version)
            _exit(1);
        tamis_file_unlock(lock);
    }
}

static void check_survivor(int report)
{
    uint64_t version = 0, denied = 0;
    tamis_filter *f;
    tamis_lock *lock;
    tamis_reason reason = {0};
    if (pread(report, &version, sizeof version, 0) != sizeof version)
        version = 0;
    if (CHECK_MSG(tamis_file_lock(&lock, "killed", NULL, &reason) == TAMIS_OK, "%s", reason.text))
        tamis_file_unlock(lock);
    if (version == 0 && access("killed", F_OK) != 0)
        return;
    if (!CHECK_MSG(tamis_filter_load(&f, "killed", NULL, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    for (uint64_t i = 0; i < 100 * version; i++)
        denied += !tamis_filter_has(f, &i, sizeof i);
    CHECK(denied == 0);
    tamis_filter_free(f);
}

TEST(killed_at_any_moment_the_file_is_whole)
{
    uint64_t rng = harness_seed(), saved = 0;
    unsigned rounds = HARNESS_TIMES(30, 200);
    for (unsigned round = 0; round < rounds; round++) {
        int report = open("report", O_RDWR | O_CREAT | O_TRUNC, 0600);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            save_for_ever(report);
        while (round % 2 && lseek(report, 0, SEEK_END) == 0 && waitpid(pid, NULL, WNOHANG) == 0)
            usleep(1000); /* every second one has saved once */
        usleep((useconds_t)(1000 + rng_next(&rng) % 40000));
        kill(pid, SIGKILL);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        check_survivor(report);
        uint64_t version = 0;
        saved += pread(report, &version, sizeof version, 0) == sizeof version ? version : 0;
        close(report);
        unlink("killed");
    }
    CHECK(saved >= rounds / 2);
    unlink("report");
    CHECK_MSG(files_in(".") <= 2, "%u files are left", files_in("."));
    if (system("rm -f .tamis-* killed.lock") != 0)
        CHECK(false);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void lock_is_busy(void)
{
    tamis_lock *lock;
    tamis_reason r = {0};
    char pid[32];
    tamis_error e = tamis_file_lock(&lock, "shared", NULL, &r);
    snprintf(pid, sizeof pid, "process %ld is writing", (long)getppid());
    CHECK_MSG(e == TAMIS_EBUSY && strstr(r.text, pid) && strstr(r.text, "shared"), "%s: %s",
              tamis_error_name(e), r.text);
    CHECK(tamis_file_lock(&lock, "other", NULL, &r) == TAMIS_OK);
    tamis_file_unlock(lock);
}

static void lock_is_free(void)
{
    tamis_lock *lock;
    CHECK(tamis_file_lock(&lock, "shared", NULL, NULL) == TAMIS_OK);
    _exit(0); /* without unlocking */
}

TEST(one_writer_at_a_time)
{
    tamis_lock *lock = NULL, *second = NULL;
    tamis_reason r;
    CHECK(symlink("shared", "alias") == 0);
    CHECK(tamis_file_lock(&lock, "alias", NULL, &r) == TAMIS_OK);
    CHECK(in_child(lock_is_busy) == 0);
    CHECK(tamis_file_lock(&second, "shared", NULL, &r) == TAMIS_EBUSY); /* within a process too */
    tamis_file_unlock(lock);
    CHECK(access("shared.lock", F_OK) != 0);
    CHECK(in_child(lock_is_free) == 0);
    CHECK(access("shared.lock", F_OK) == 0); /* left behind by a process that died */
    CHECK(tamis_file_lock(&lock, "shared", NULL, &r) == TAMIS_OK);
    tamis_file_unlock(lock);
    tamis_file_unlock(NULL);
    unlink("alias");
    CHECK(files_in(".") == 0);
}

/* Lock, load, change, save, unlock, many times over. */
static void write_shared(unsigned who, unsigned rounds)
{
    tamis_open_options o = {.wait = true};
    for (unsigned i = 0; i < rounds; i++) {
        tamis_lock *lock;
        tamis_filter *f;
        char key[32];
        if (!CHECK(tamis_file_lock(&lock, "shared", &o, NULL) == TAMIS_OK))
            return;
        if (CHECK(tamis_filter_load(&f, "shared", NULL, NULL) == TAMIS_OK)) {
            int len = snprintf(key, sizeof key, "%u-%u", who, i);
            CHECK(tamis_filter_add(f, key, (size_t)len, NULL) == TAMIS_OK);
            CHECK(tamis_filter_save(f, "shared", 0, NULL) == TAMIS_OK);
            tamis_filter_free(f);
        }
        tamis_file_unlock(lock);
    }
}

TEST(writers_do_not_lose_each_others_keys)
{
    enum { WRITERS = 4, ROUNDS = 25 };
    tamis_filter *f = some_filter(1, "first");
    pid_t pids[WRITERS];
    CHECK(tamis_filter_save(f, "shared", 0, NULL) == TAMIS_OK);
    tamis_filter_free(f);
    fflush(stdout);
    for (unsigned i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            atomic_store(&harness.failed_checks, 0);
            write_shared(i, ROUNDS);
            _exit(atomic_load(&harness.failed_checks) != 0);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    tamis_filter_facts info;
    if (CHECK(tamis_filter_open(&f, "shared", NULL, NULL) == TAMIS_OK)) {
        tamis_filter_info(f, &info);
        CHECK_MSG(info.items >= 1 + WRITERS * ROUNDS - 2, "%" PRIu64 " keys", info.items);
        for (unsigned i = 0; i < WRITERS * ROUNDS; i++) {
            char key[32];
            int len = snprintf(key, sizeof key, "%u-%u", i / ROUNDS, i % ROUNDS);
            CHECK(tamis_filter_has(f, key, (size_t)len));
        }
        tamis_filter_free(f);
    }
    unlink("shared");
    CHECK(files_in(".") == 0);
}

/* ---- damaged files --------------------------------------------------------------------------- */

TEST(verify_finds_every_flipped_bit)
{
    struct history h;
    tamis_filter *f = history_new(&h, 11, 4), *out;
    history_steps(&h, f, 30);
    struct bytes bytes = bytes_of(f, 0);
    tamis_reason reason;
    tamis_open_options o = opening(&h);
    write_file("damaged", bytes.data, bytes.len);
    int fd = open("damaged", O_WRONLY);
    size_t step = harness_long() ? 1 : 1 + bytes.len * 8 / 3000;
    for (size_t bit = 0; bit < 8 * bytes.len; bit += step) {
        uint8_t flipped = bytes.data[bit / 8] ^ (uint8_t)(1u << bit % 8);
        CHECK(pwrite(fd, &flipped, 1, (off_t)bit / 8) == 1);
        CHECK_MSG(tamis_file_verify("damaged", &reason) != TAMIS_OK, "bit %zu", bit);
        CHECK(strncmp(reason.text, "damaged: ", 9) == 0);
        CHECK(tamis_filter_open(&out, "damaged", &o, &reason) != TAMIS_OK);
        CHECK(pwrite(fd, &bytes.data[bit / 8], 1, (off_t)bit / 8) == 1);
    }
    CHECK(tamis_file_verify("damaged", &reason) == TAMIS_OK);
    close(fd);
    unlink("damaged");
    bytes_free(&bytes);
    tamis_filter_free(f);
}

HARNESS_MAIN
