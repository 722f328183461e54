/* Loading a library by its name, with the functions that are used of it. See late.h. */
#include "late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool late_load(const char *library, const char *const *names, size_t n, void (**table)(void),
               char why[256])
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* stays for the life of the process */
    for (size_t i = 0; handle && i < n; i++) {
        void *found = dlsym(handle, names[i]);
        if (!found)
            handle = NULL;
        memcpy(&table[i], &found, sizeof found);
    }
    if (!handle) {
        const char *text = dlerror();
        snprintf(why, 256, "%.255s", text ? text : "a function is missing");
    }
    return handle != NULL;
}
