/*
 * Times as logs write them. Every record has one, the index needs it as a number, and a file has
 * millions: so each form is parsed digit by digit, with neither strptime() nor mktime() (400 ns), the
 * offset of a zone from UTC is looked up once for each quarter of an hour that occurs, and of a time that
 * differs from the last one only in hour, minute, second and fraction only these are read.
 *
 *     2024-05-01T10:00:00.123Z      RFC 3339; also with a blank for the T, a comma before the
 *     2024/05/01 10:00 +0200        fraction, slashes or dots in the date, without seconds, without a zone
 *     2024-05-01                    its midnight
 *     10/Oct/2000:13:55:36 -0700    access logs; also with a blank for the colon
 *     10-Oct-2000 13:55:36.123      Tomcat, PHP, BIND
 *     0501 10:00:00.123456          klog, always with microseconds; also 20240501
 *     Oct 11 22:14:15               RFC 3164: the newest year not later than the reference and a day
 *     Oct 11 2023 22:14:15          the same with a year
 *     Wed Oct 11 22:14:15.5 2023    asctime, error logs of Apache
 *     Wed, 11 Oct 2023 22:14:15 GMT mail and HTTP
 *     1700000000.25                 since 1970: seconds below 10^11, then milliseconds below 10^14,
 *                                   microseconds below 10^17, nanoseconds
 *     /Date(1714557600000)/         JSON of .NET, such as that of PowerShell 5: milliseconds since 1970
 *
 * A time without a zone is in the zone of the context. Of an hour that occurs twice the first is taken, one
 * that is skipped continues the time before it, and years range from 1 to 9999.
 */
#ifndef TAMIS_TIME_READ_H
#define TAMIS_TIME_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds since 1970 in UTC, and the fraction. */
struct stamp {
    int64_t seconds;
    uint32_t nanoseconds;
};

/* One per thread: it caches zone offsets. */
struct time_context {
    const char *zone;  /* a name for TZ such as Europe/Paris; NULL: UTC */
    int64_t reference; /* seconds: a time without a year is at most a day later */
    int64_t quarter;   /* the quarter of an hour whose offset is known, plus 1; 0: none */
    int64_t offset;
    /* the text of the last time before and after its hour, minute and second */
    uint8_t date[12], east[8];
    unsigned date_len, east_len; /* date_len 0: none */
    bool zoned, normal;          /* normal: as time_write() writes it */
    int64_t midnight, ahead;     /* seconds: of the date as if it were UTC; of its offset */
    /* the day last written, since 1970; written[0] 0: none */
    int64_t day;
    char written[11]; /* 2024-05-01T */
};

#define TIME_NORMAL_MAX 32

/* True if all of the bytes are a time, except blanks and quotes around it. */
bool time_read(struct time_context *context, const uint8_t *text, size_t len, struct stamp *out);
/* The length of a time at the start of the bytes, 0 if there is none. Does not accept numbers since 1970
   or dates without a time. */
size_t time_lead(struct time_context *context, const uint8_t *text, size_t len, struct stamp *out);
/* The same for a line of text, after a bracket, or the letter of klog (*bracket: 1, else 0). Ten digits are seconds since 1970 if they have a
   fraction and a blank follows, as in logs of Squid, or in brackets, as in those of Nagios. */
size_t time_lead_line(struct time_context *context, const uint8_t *line, size_t len,
                      size_t *bracket, struct stamp *out);
/* RFC 3339 in UTC, without trailing zeros in the fraction; returns its length. */
size_t time_write(struct stamp stamp, char out[TIME_NORMAL_MAX]);
/* Both together: the normal form of a time; 0: it is not a time. */
size_t time_normal(struct time_context *context, const uint8_t *text, size_t len,
                   char out[TIME_NORMAL_MAX]);

/* Seconds east of UTC in the zone of the context, at a local time in seconds since 1970 as if it were UTC. */
int64_t time_zone_offset(struct time_context *context, int64_t local);
/* The zone of this machine by its name: TZ, else what /etc/localtime links to or is, else UTC. */
void time_zone_here(char *out, size_t room);
/* Is it in the zone database of this machine, or a rule such as CET-1CEST? libc treats any other name as UTC. */
bool time_zone_known(const char *zone);

#endif
