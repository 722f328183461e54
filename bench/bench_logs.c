/*
 * Logs for bench/questions.py: requests to a web server over ten days, some 230 bytes each, the same
 * ones in every format. Addresses are drawn by Zipf's law from 100,000, users from 20,000; 80 % have
 * status 200 and 8 % 404; one record of a million has the word "zebrawood" in its agent.
 *
 *     bench_logs FOLDER FILES RECORDS combined|csv|jsonl[.gz]      RECORDS: in all
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define START 1714521600 /* 2024-05-01 */
#define SPAN  (10 * 86400)

static uint64_t state;

static uint64_t draw(void)
{
    return bench_mix(++state);
}

static unsigned zipf(unsigned most)
{
    return bench_zipf(draw(), most);
}

struct request {
    char host[40], user[8], path[48], agent[180], referer[80], clock[40];
    const char *method;
    int status;
    unsigned bytes;
};

static void make(struct request *r, uint64_t i, uint64_t records, int iso)
{
    static const char *const agents[] = {
        "Mozilla/5.0 (X11; Linux x86_64; rv:%u.0) Gecko/20100101 Firefox/115.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/%u.0.0.0 Safari/537.36",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_%u like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Version/17.4 Mobile/15E148 Safari/604.1",
        "python-requests/2.%u"};
    static const char *const parts[] = {"index", "login", "images", "api", "static", "search"};
    unsigned host = zipf(BENCH_NAMES), user = zipf(20000), kind = (unsigned)(draw() % 100);
    state = 3 * i + 1; /* the same in every format and file */
    snprintf(r->host, sizeof r->host, "10.%u.%u.%u", host / 62500, host / 250 % 250, host % 250);
    snprintf(r->user, sizeof r->user, "u%05u", user);
    snprintf(r->path, sizeof r->path, "/%s/%s/%u.html", parts[draw() % 6], parts[draw() % 6],
             zipf(2000));
    snprintf(r->agent, sizeof r->agent, agents[draw() % 4], (unsigned)(60 + draw() % 60));
    snprintf(r->referer, sizeof r->referer, "https://www.example.com/%s/%s.html", parts[draw() % 6],
             parts[draw() % 6]);
    if (i % 1000000 == 777777 % records)
        strcat(r->agent, " Zebrawood/1.0");
    r->method = draw() % 10 ? "GET" : "POST";
    r->status = kind < 80 ? 200 : kind < 88 ? 404 : kind < 95 ? 304 : kind < 98 ? 301 : 500;
    r->bytes = (unsigned)(draw() % 50000);
    time_t when = START + (time_t)(i * SPAN / records);
    struct tm tm;
    gmtime_r(&when, &tm);
    strftime(r->clock, sizeof r->clock, iso ? "%Y-%m-%dT%H:%M:%SZ" : "%d/%b/%Y:%H:%M:%S +0000",
             &tm);
}

static int write_file(const char *path, const char *format, uint64_t from, uint64_t to,
                      uint64_t records)
{
    char command[4200];
    int packed = strstr(format, ".gz") != NULL, csv = strcmp(format, "csv") == 0,
        json = strncmp(format, "jsonl", 5) == 0;
    snprintf(command, sizeof command, "gzip -c > '%s'", path);
    FILE *out = packed ? popen(command, "w") : fopen(path, "w");
    struct request r;
    if (!out)
        return 1;
    if (csv)
        fputs("time,host,user,method,path,status,bytes,referer,agent\n", out);
    for (uint64_t i = from; i < to; i++) {
        state = 7 * i + 5;
        make(&r, i, records, csv || json);
        if (csv)
            fprintf(out, "%s,%s,%s,%s,%s,%d,%u,%s,\"%s\"\n", r.clock, r.host, r.user, r.method,
                    r.path, r.status, r.bytes, r.referer, r.agent);
        else if (json)
            fprintf(
                out,
                "{\"time\":\"%s\",\"host\":\"%s\",\"user\":\"%s\",\"method\":\"%s\",\"path\":\"%s\","
                "\"status\":%d,\"bytes\":%u,\"agent\":\"%s\"}\n",
                r.clock, r.host, r.user, r.method, r.path, r.status, r.bytes, r.agent);
        else
            fprintf(out, "%s - %s [%s] \"%s %s HTTP/1.1\" %d %u \"-\" \"%s\"\n", r.host, r.user,
                    r.clock, r.method, r.path, r.status, r.bytes, r.agent);
    }
    return packed ? pclose(out) != 0 : fclose(out) != 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "bench_logs FOLDER FILES RECORDS combined|csv|jsonl[.gz]\n"), 2;
    uint64_t files = strtoull(argv[2], NULL, 10), records = strtoull(argv[3], NULL, 10);
    const char *suffix = strcmp(argv[4], "combined") == 0 ? "log" : argv[4];
    for (uint64_t f = 0; f < files; f++) {
        char path[4100];
        snprintf(path, sizeof path, "%s/access%02u.%s", argv[1], (unsigned)f, suffix);
        if (write_file(path, argv[4], f * records / files, (f + 1) * records / files, records))
            return perror(path), 1;
    }
    return 0;
}
