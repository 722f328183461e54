/* Carriers of messages among untrusted parties: a server that answers nonsense, a shared folder in which others
 * plant links, FIFOs and leftovers. A call may fail then; it neither crashes nor touches anything else.
 */
#define _GNU_SOURCE
#include "carrier/carrier.h"
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- a server that answers nonsense ---------------------------------------------------------- */

static const char *const replies[] = {
    "+OK\r\n",
    "-MOVED\r\n",
    "-MOVED 1 \r\n",
    "-MOVED 1 :0\r\n",
    "-MOVED 1 ::::99999999999\r\n",
    "-ASK 1 127.0.0.1:1\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    ":7\r\n",
    "$0\r\n\r\n",
    "$3\r\nabc\r\n",
    "$1\r\n5\r\n",
    "*1\r\n$-1\r\n",
    "*1\r\n*-1\r\n",
    "*1\r\n*0\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n$3\r\nabc\r\n",
    "*2\r\n$-1\r\n$-1\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n",
    "*2\r\n*-1\r\n*-1\r\n",
    "*2\r\n-ERR no\r\n+OK\r\n",
    "*1\r\n*2\r\n$-1\r\n$-1\r\n",
    "*1\r\n*2\r\n$-1\r\n*-1\r\n",
    "*1\r\n*2\r\n*-1\r\n*2\r\n$1\r\no\r\n$1\r\nx\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*-1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n$-1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*2\r\n*0\r\n:1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$-1\r\n*-1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$-1\r\n$-1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$-1\r\n*4\r\n$1\r\no\r\n$1\r\na\r\n$1\r\nm\r\n$1\r\nx\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*4\r\n$1\r\no\r\n:1\r\n$1\r\nm\r\n*-1\r\n",
    "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*4\r\n$1\r\no\r\n$1\r\na\r\n$1\r\nm\r\n$1\r\nx\r\n",
    "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\no\r\n$1\r\na\r\n",
    "*3\r\n$-1\r\n:1\r\n*1\r\n$-1\r\n",
    "*8\r\n$1\r\na\r\n$-1\r\n*-1\r\n:1\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n",
    "*8\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n",
    "-ERR something\r\n",
    "nonsense\r\n",
};
enum { REPLIES = sizeof replies / sizeof *replies };

/* Every command of hiredis is one array, sent in one piece here: whatever comes is one question. */
struct server {
    int listening;
    atomic_bool stop;
    atomic_int always; /* this reply to everything, or -1: drawn */
    uint64_t rng;
};

static void *serve(void *context)
{
    struct server *s = context;
    while (!atomic_load(&s->stop)) {
        char room[4096];
        int fd = accept(s->listening, NULL, NULL);
        while (fd >= 0 && read(fd, room, sizeof room) > 0) {
            int always = atomic_load(&s->always);
            const char *reply = replies[always >= 0 ? always : (int)(rng_next(&s->rng) % REPLIES)];
            if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0)
                break;
        }
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static void taken(void *context, const char *owner, const void *data, size_t len, uint64_t age)
{
    uint64_t *sum = context;
    *sum += strlen(owner) + age;
    for (size_t i = 0; i < len; i++)
        *sum += ((const uint8_t *)data)[i];
}

static void named(void *context, const char *owner, bool forgotten)
{
    *(uint64_t *)context += strlen(owner) + forgotten;
}

/* Each call on a connection of its own: after an error there is a pause. */
static void call(const char *url, unsigned which)
{
    char error[256], position[CARRIER_POSITION] = "";
    uint64_t sum = 0;
    struct carrier_part part = {"part", 4};
    struct carrier_state state;
    struct carrier *c = carrier_open(url, error);
    if (!CHECK_MSG(c != NULL, "%s", error))
        return;
    switch (which) {
    case 0:
        carrier_send(c, "owner", "message", 7);
        break;
    case 1:
        carrier_replace(c, "owner", 5, &part, 1);
        break;
    case 2:
        carrier_send(c, "owner", "message", 7);
        carrier_state(c, "owner", &state);
        break;
    case 3:
        carrier_retire(c, "owner", which % 2);
        carrier_send(c, "owner", "message", 7);
        carrier_advance(c, "owner");
        break;
    case 4:
        for (int i = 0; i < 4; i++)
            carrier_receive(c, position, 0, taken, &sum);
        break;
    case 5:
        carrier_fetch(c, "owner", position, taken, &sum);
        break;
    default:
        carrier_owners(c, named, &sum);
    }
    carrier_close(c);
}

TEST(a_server_may_answer_anything)
{
    struct server s = {.listening = socket(AF_UNIX, SOCK_STREAM, 0), .rng = harness_seed()};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    char url[300], here[200];
    pthread_t thread;
    CHECK(getcwd(here, sizeof here) != NULL);
    snprintf(url, sizeof url, "redis+unix://%s/socket?name=n", here);
    CHECK(bind(s.listening, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(s.listening, 8) == 0);
    atomic_store(&s.always, -1);
    CHECK(pthread_create(&thread, NULL, serve, &s) == 0);
    for (int reply = 0; reply < REPLIES; reply++) {
        atomic_store(&s.always, reply);
        for (unsigned which = 0; which < 7; which++)
            call(url, which);
    }
    atomic_store(&s.always, -1);
    for (unsigned i = 0; i < HARNESS_TIMES(5000, 50000); i++)
        call(url, i % 7);
    atomic_store(&s.stop, true);
    shutdown(s.listening, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(s.listening);
    unlink("socket");
}

/* ---- two nodes of a Cluster -------------------------------------------------------------------- */

static atomic_int
    patience; /* seconds that the carrier waits for replies on its latest connection */

/* Called by hiredis. */
__attribute__((visibility("default"))) int setsockopt(int fd, int level, int name,
                                                      const void *value, socklen_t len)
{
    __typeof__(&setsockopt) real;
    void *found = dlsym(RTLD_NEXT, "setsockopt");
    struct timeval time;
    memcpy(&real, &found, sizeof real);
    if (level == SOL_SOCKET && name == SO_RCVTIMEO && len == sizeof time) {
        memcpy(&time, value, sizeof time);
        atomic_store(&patience, (int)time.tv_sec);
    }
    return real(fd, level, name, value, len);
}

struct node {
    int listening, port;
    char redirect[64]; /* its reply to XREAD; "": it has the stream */
    atomic_int waited; /* patience when it was asked to wait for messages */
    pthread_t thread;
};

static void *serve_node(void *context)
{
    struct node *node = context;
    int fd;
    while ((fd = accept(node->listening, NULL, NULL)) >= 0) {
        char room[4096];
        ssize_t n;
        while ((n = read(fd, room, sizeof room - 1)) > 0) {
            room[n] = 0;
            bool waits = strstr(room, "XREAD") != NULL;
            const char *reply = waits && node->redirect[0]                       ? node->redirect
                                : strstr(room, "PING") || strstr(room, "ASKING") ? "+OK\r\n"
                                                                                 : "*0\r\n";
            if (waits)
                atomic_store(&node->waited, atomic_load(&patience));
            if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0)
                break;
        }
        close(fd);
    }
    return NULL;
}

static void node_start(struct node *node, const char *redirect, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    *node = (struct node){.listening = socket(AF_INET, SOCK_STREAM, 0)};
    if (redirect)
        snprintf(node->redirect, sizeof node->redirect, "-%s 1 127.0.0.1:%d\r\n", redirect, port);
    CHECK(bind(node->listening, (struct sockaddr *)&name, len) == 0);
    CHECK(getsockname(node->listening, (struct sockaddr *)&name, &len) == 0);
    CHECK(listen(node->listening, 8) == 0);
    node->port = ntohs(name.sin_port);
    CHECK(pthread_create(&node->thread, NULL, serve_node, node) == 0);
}

static void node_stop(struct node *node)
{
    shutdown(node->listening, SHUT_RDWR);
    pthread_join(node->thread, NULL);
    close(node->listening);
}

/* A node that is asked to hold its reply back for a minute is given that minute, wherever the question is sent. */
TEST(redirects_keep_the_time_that_a_reply_may_take)
{
    static const char *const redirects[] = {"MOVED", "ASK"};
    for (size_t i = 0; i < 2; i++) {
        struct node nodes[2];
        char url[64], error[256], position[CARRIER_POSITION] = "";
        uint64_t sum = 0;
        node_start(&nodes[1], NULL, 0);
        node_start(&nodes[0], redirects[i], nodes[1].port);
        snprintf(url, sizeof url, "redis://127.0.0.1:%d/n", nodes[0].port);
        struct carrier *c = carrier_open(url, error);
        CHECK_MSG(carrier_receive(c, position, 60000, taken, &sum) == 0, "%s", c->error);
        CHECK_MSG(atomic_load(&nodes[1].waited) > 60, "%s: %d s", redirects[i],
                  atomic_load(&nodes[1].waited));
        CHECK(carrier_send(c, "owner", "message", 7));
        CHECK(atomic_load(&patience) < 10);
        carrier_close(c);
        node_stop(&nodes[0]);
        node_stop(&nodes[1]);
    }
}

/* ---- a folder that others write to ----------------------------------------------------------- */

static bool file_is(const char *path, const char *text)
{
    char have[64] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof have - 1);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && strcmp(have, text) == 0;
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static struct carrier *folder(void)
{
    char error[256];
    struct carrier *c = carrier_open("file:shared", error);
    CHECK_MSG(c != NULL, "%s", error);
    return c;
}

/* What is written goes to a new file, never through a link that someone put there. */
TEST(planted_links_are_not_written_through)
{
    static const char *const names[] = {".new", "snapshot", "00000000000000000001", "index",
                                        "../owners"};
    struct carrier_part part = {"secret", 6};
    CHECK(mkdir("shared", 0700) == 0 && mkdir("shared/me", 0700) == 0);
    write_text("victim", "mine");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "shared/me/%s", names[i]);
        CHECK(system("rm -f shared/me/* shared/me/.new shared/owners") == 0);
        CHECK(symlink("../../victim", path) == 0);
        struct carrier *c = folder();
        carrier_replace(c, "me", 7, &part, 1);
        carrier_send(c, "me", "message", 7);
        CHECK_MSG(file_is("victim", "mine"), "through %s", names[i]);
        carrier_close(c);
    }
    CHECK(system("rm -r shared/me") == 0 && mkdir("there", 0700) == 0);
    CHECK(symlink("../there", "shared/me") == 0); /* nor into a folder elsewhere */
    struct carrier *c = folder();
    CHECK(!carrier_replace(c, "me", 7, &part, 1));
    write_text("there/00000000000000000001", "mine"), write_text("there/snapshot", "mine");
    CHECK(!carrier_retire(c, "me", true)); /* nor is anything removed there */
    CHECK(unlink("there/00000000000000000001") == 0 && unlink("there/snapshot") == 0);
    CHECK(rmdir("there") == 0);
    carrier_close(c);
    CHECK(system("rm -r shared") == 0);
    unlink("victim");
}

/* What is read is a file of the folder: no link out of it, nothing that waits. */
TEST(planted_links_and_fifos_are_not_read)
{
    static const char *const names[] = {"snapshot", "00000000000000000001", "index", "../owners"};
    char position[CARRIER_POSITION] = "";
    uint8_t front[32] = {0};
    memcpy(front + 16, "\x08\0\0\0\0\0\0\0stranger", 16);
    CHECK(mkdir("shared", 0700) == 0 && mkdir("shared/me", 0700) == 0);
    int fd = open("other", O_WRONLY | O_CREAT, 0600);
    CHECK(write(fd, front, sizeof front) == (ssize_t)sizeof front);
    close(fd);
    for (size_t i = 0; i < 8; i++) {
        char path[64];
        uint64_t sum = 0;
        struct carrier_state state;
        write_text("shared/owners", "me\n");
        write_text("shared/me/index", "tamis objects 1\nepoch 1\nmessages 1 1\n");
        snprintf(path, sizeof path, "shared/me/%s", names[i % 4]);
        unlink(path);
        CHECK(i < 4 ? symlink("../../other", path) == 0 : mkfifo(path, 0600) == 0);
        struct carrier *c = folder();
        alarm(120);
        carrier_fetch(c, "me", position, taken, &sum);
        carrier_receive(c, position, 0, taken, &sum);
        carrier_state(c, "me", &state);
        alarm(0);
        CHECK_MSG(sum == 0, "read through %s", names[i % 4]);
        carrier_close(c);
        unlink(path);
    }
    CHECK(system("rm -r shared") == 0);
    unlink("other");
}

struct got {
    size_t n, len;
    bool zeros;
};

static void got(void *context, const char *owner, const void *data, size_t len, uint64_t age)
{
    struct got *g = context;
    (void)owner, (void)age;
    *g = (struct got){g->n + 1, len, true};
    for (size_t i = 0; i < len; i++)
        g->zeros &= ((const uint8_t *)data)[i] == 0;
}

/* A snapshot whose one message is a frame of zstd: this many blocks of 128 KiB of zeros, and what it claims to have. */
static size_t put_frame(uint32_t blocks, uint64_t claim)
{
    static uint8_t file[24 + 13 + 4 * 4096];
    size_t len = 13 + 4 * (size_t)blocks;
    memset(file, 0, sizeof file);
    memcpy(file + 16, &len, 8); /* after epoch and number */
    memcpy(file + 24, "\x28\xB5\x2F\xFD\xE0", 5);
    memcpy(file + 29, &claim, 8);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t head = (i + 1 == blocks) | 1 << 1 | (1 << 17) << 3; /* last, repeated byte, size */
        memcpy(file + 37 + 4 * i, &head, 3);
    }
    int fd = open("shared/me/snapshot", O_WRONLY | O_TRUNC);
    CHECK(write(fd, file, 24 + len) == (ssize_t)(24 + len));
    close(fd);
    return len;
}

/* Snapshots are compressed on their way. A small frame with a quarter of a gigabyte or more in it is not decompressed,
   nor one that claims what it does not have: they arrive as they are, to be refused. */
TEST(compressed_snapshots_arrive_whole_and_bombs_do_not)
{
    static const uint8_t zeros[1 << 20];
    static const struct {
        uint32_t blocks;
        uint64_t claim;
    } bombs[] = {{2049, (uint64_t)2049 << 17}, {8, 9 << 17}, {8, (uint64_t)1 << 40}, {0, 1 << 20}};
    struct carrier_part part = {zeros, sizeof zeros};
    char position[CARRIER_POSITION] = "";
    struct got g = {0};
    struct stat st;
    struct carrier *c = folder();
    CHECK(carrier_replace(c, "me", 7, &part, 1));
    CHECK(stat("shared/me/snapshot", &st) == 0 && st.st_size < 2000);
    CHECK(carrier_fetch(c, "me", position, got, &g) == 1);
    CHECK(g.n == 1 && g.len == sizeof zeros && g.zeros);
    put_frame(8, 8 << 17);
    CHECK(carrier_fetch(c, "me", position, got, &g) == 1);
    CHECK(g.n == 2 && g.len == sizeof zeros && g.zeros);
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        size_t len = put_frame(bombs[i].blocks, bombs[i].claim);
        CHECK(carrier_fetch(c, "me", position, got, &g) == 1);
        CHECK_MSG(g.n == 3 + i && g.len == len, "%zu bytes of frame %zu", g.len, i);
    }
    carrier_close(c);
    CHECK(system("rm -r shared") == 0);
}

static size_t listed; /* entries of folders, by whoever lists them */

int scandir(const char *path, struct dirent ***names, int (*filter)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **))
{
    __typeof__(&scandir) real;
    void *found = dlsym(RTLD_NEXT, "scandir");
    memcpy(&real, &found, sizeof real);
    int n = real(path, names, filter, compare);
    listed += n > 0 ? (size_t)n : 0;
    return n;
}

/* One that publishes for the first time lists its own folder, not that of all others. */
TEST(a_new_owner_costs_the_same_however_many_there_are)
{
    enum { OWNERS = 200 };
    struct carrier_part part = {"snapshot", 8};
    struct carrier_state state;
    listed = 0;
    for (unsigned i = 0; i < OWNERS; i++) {
        char owner[16];
        struct carrier *c = folder();
        snprintf(owner, sizeof owner, "o%u", i);
        CHECK(carrier_replace(c, owner, 7, &part, 1) && carrier_send(c, owner, "message", 7));
        CHECK(carrier_state(c, owner, &state) && state.there && state.whole);
        carrier_close(c);
    }
    CHECK_MSG(listed < 40 * OWNERS, "%zu entries", listed);
    uint64_t sum = 0;
    char position[CARRIER_POSITION] = "";
    struct carrier *c = folder();
    CHECK(carrier_receive(c, position, 0, taken, &sum) == OWNERS);
    carrier_close(c);
    CHECK(truncate("shared/owners", 7) == 0); /* a line that was lost is there again */
    c = folder();
    CHECK(carrier_state(c, "o150", &state));
    carrier_close(c);
    c = folder();
    position[0] = 0;
    CHECK(carrier_receive(c, position, 0, taken, &sum) == 3);
    carrier_close(c);
    CHECK(system("rm -r shared") == 0);
}

HARNESS_MAIN
