/* The server provides its functions by name, through a pointer that is the first word of the
   context. See server_api.h. */
#include "server_api.h"

#include <string.h>

struct api rm;

typedef int (*get_function)(const char *name, void *target);

static const struct {
    const char *name;
    size_t offset;
} required[] =
    {
#define X(result, name, arguments) {"RedisModule_" #name, offsetof(struct api, name)},
        RM_FUNCTIONS(X)
#undef X
},
  optional[] = {
#define X(result, name, arguments) {"RedisModule_" #name, offsetof(struct api, name)},
      RM_OPTIONAL(X)
#undef X
};

const char *api_load(RedisModuleCtx *ctx)
{
    get_function get;
    void (*own)(void);
    memcpy(&get, ctx, sizeof get);
    rm.is_valkey = get("ValkeyModule_Alloc", &own) == RM_OK;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (get(required[i].name, (char *)&rm + required[i].offset) != RM_OK)
            return required[i].name;
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (get(optional[i].name, (char *)&rm + optional[i].offset) != RM_OK)
            memset((char *)&rm + optional[i].offset, 0, sizeof(void (*)(void)));
    return NULL;
}
