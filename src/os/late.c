/* Loads a library by name, with the functions that are used. See late.h. */
#include "late.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static bool load(const char *library, const char *const *names, size_t n, void (**table)(void),
                 bool (*first)(void), char why[256])
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* stays for the life of the process */
    for (size_t i = 0; handle && i < n; i++) {
        void *found = dlsym(handle, names[i]);
        if (!found)
            handle = NULL;
        memcpy(&table[i], &found, sizeof found);
    }
    const char *text = handle ? NULL : dlerror();
    if (handle && (!first || first()))
        return true;
    snprintf(why, 256, "%.255s", text ? text : "it cannot be used");
    memset(table, 0, n * sizeof *table);
    return false;
}

bool late_load(const char *library, const char *const *names, size_t n, void (**table)(void),
               bool (*first)(void), char why[256])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool good = table[0] || load(library, names, n, table, first, why);
    pthread_mutex_unlock(&lock);
    return good;
}
