/*
 * The zones of times that are written without one. Their rules are those of libc, which is asked once for each quarter
 * of an hour that occurs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "time_read.h"

/* The offset of the process's zone at a moment. */
static int64_t offset_at(int64_t utc)
{
    time_t at = (time_t)utc;
    struct tm tm;
    return localtime_r(&at, &tm) ? tm.tm_gmtoff : 0;
}

/*
 * The offset at a local time. An hour that occurs twice, or not at all, has two offsets, those a day before and a
 * day after: the earlier one counts, unless only the later one leads back to the local time. (mktime() decides such
 * hours by its earlier calls, so that a record and a question would differ.) libc has one zone per process:
 * it is changed only here, and usually once.
 */
static int64_t look_up(const char *zone, int64_t local)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *now;
    pthread_mutex_lock(&lock);
    if (!now || strcmp(now, zone) != 0) {
        free(now);
        now = strdup(zone);
        setenv("TZ", zone, 1);
        tzset();
    }
    int64_t before = offset_at(local - 86400), after = offset_at(local + 86400);
    bool later = offset_at(local - before) != before && offset_at(local - after) == after;
    pthread_mutex_unlock(&lock);
    return later ? after : before;
}

int64_t time_zone_offset(struct time_context *x, int64_t local)
{
    int64_t quarter = (local >= 0 ? local : local - 899) / 900;
    if (!x->zone)
        return 0;
    if (x->quarter != quarter + 1 || x->quarter == 0) {
        x->offset = look_up(x->zone, quarter * 900);
        x->quarter = quarter + 1;
        if (look_up(x->zone, quarter * 900 + 899) != x->offset) { /* St. John's: at 00:01 */
            x->quarter = 0;
            return look_up(x->zone, local);
        }
    }
    return x->offset;
}

/* Does a file of the zone database begin as it should? */
static bool zone_file(const char *folder, const char *name)
{
    char path[600], magic[4] = "";
    int len = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
    FILE *file = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    bool good = file && fread(magic, 1, 4, file) == 4 && memcmp(magic, "TZif", 4) == 0;
    if (file)
        fclose(file);
    return good;
}

bool time_zone_known(const char *zone)
{
    const char *folder = getenv("TZDIR"), *last = strrchr(zone, '/');
    if (strcmp(last ? last + 1 : zone, "UTC") == 0)
        return true;
    if (zone[0] == '/')
        return zone_file("", zone);
    size_t name = zone[0] == '<' ? strcspn(zone, ">") + (strchr(zone, '>') != NULL)
                                 : strspn(zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "abcdefghijklmnopqrstuvwxyz");
    const char *offset = zone + name + (zone[name] == '-' || zone[name] == '+');
    return (name >= 3 && *offset >= '0' && *offset <= '9') || /* CET-1CEST: as POSIX has it */
           zone_file(folder && *folder ? folder : "/usr/share/zoneinfo", zone);
}

void time_zone_here(char *out, size_t room)
{
    char target[512];
    const char *given = getenv("TZ"), *name = NULL;
    ssize_t len = readlink("/etc/localtime", target, sizeof target - 1);
    if (len > 0) {
        target[len] = 0;
        name = strstr(target, "zoneinfo/");
        name = name ? name + strlen("zoneinfo/") : NULL;
    }
    if (!name)
        name = "/etc/localtime"; /* a copy, from which its name is not known */
    if (given && *given)
        name = *given == ':' ? given + 1 : given;
    if (strlen(name) >= room || !time_zone_known(name))
        name = "UTC";
    strcpy(out, name);
}
