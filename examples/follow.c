/* A gateway knows who has what: it follows all origins of an address in a thread of its own, and asks. */
#include <stdio.h>
#include <string.h>

#include <tamis/carrier.h>

int main(int argc, char **argv)
{
    tamis_directory *who;
    tamis_following *following;
    tamis_reason reason;
    const char *address = argc > 1 ? argv[1] : "file:exchange";
    if (tamis_directory_new(&who, NULL, &reason) != TAMIS_OK ||
        tamis_following_new(&following, address, who, NULL, &reason) != TAMIS_OK ||
        tamis_following_start(following, &reason) != TAMIS_OK)
        return fprintf(stderr, "%s\n", reason.text), 2;

    /* Keys from standard input, for as long as there are any: "ann" -> "ann: store-1 ?store-2". */
    char key[1024];
    while (fgets(key, sizeof key, stdin)) {
        tamis_place place[64];
        key[strcspn(key, "\n")] = 0;
        size_t n = tamis_directory_locate(who, key, strlen(key), place, 64);
        printf("%s:", key);
        for (size_t i = 0; i < n && i < 64; i++)
            printf(" %s%s", place[i].doubt ? "?" : "", tamis_directory_name(who, place[i].owner));
        printf("\n");
        fflush(stdout);
    }
    tamis_following_free(following);
    tamis_directory_free(who);
    return 0;
}
