/* A store publishes what it has; a gateway, elsewhere, knows it. Here a function call is the network. */
#include <stdio.h>
#include <string.h>

#include <tamis/replica.h>

static int carry(void *gateway, const void *message, size_t len)
{
    return tamis_directory_take((tamis_directory *)gateway, NULL, message, len, 0, NULL, NULL) !=
           TAMIS_OK;
}

int main(void)
{
    tamis_filter *stock;
    tamis_origin *store;
    tamis_directory *gateway;
    tamis_origin_options options;
    memset(&options, 0, sizeof options);
    options.owner = "store-1";
    options.targets.member_miss = 0.01; /* copies may deny 1 % of the members, no more */

    if (tamis_filter_new(&stock, NULL, NULL) != TAMIS_OK ||
        tamis_origin_new(&store, stock, &options, NULL) != TAMIS_OK ||
        tamis_directory_new(&gateway, NULL, NULL) != TAMIS_OK)
        return 1;

    for (int i = 0; i < 100000; i++) {
        if (tamis_filter_add(stock, &i, sizeof i, NULL) != TAMIS_OK)
            return 1;
        if (tamis_origin_due(store) != TAMIS_DUE_NOT &&
            tamis_origin_publish(store, carry, gateway, NULL) != TAMIS_OK)
            return 1;
    }

    int known = 0;
    for (int i = 0; i < 100000; i++) {
        tamis_place place;
        known += tamis_directory_locate(gateway, &i, sizeof i, &place, 1) == 1 && !place.doubt;
    }
    tamis_origin_facts facts;
    tamis_origin_info(store, &facts);
    printf("%d of 100000 keys are located at %s\n", known, tamis_directory_name(gateway, 0));
    printf("%llu versions, %.1f bytes a key\n", (unsigned long long)facts.version,
           (double)facts.bytes / 100000);

    tamis_directory_free(gateway);
    tamis_origin_free(store);
    tamis_filter_free(stock);
    return known >= 98900 ? 0 : 1;
}
