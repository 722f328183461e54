/* Starts threads and waits for them. See threads.h. */
#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

unsigned processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

void threads_run(void *(*work)(void *element), void *elements, size_t size, size_t n)
{
    pthread_t thread[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    char *element = elements;
    for (size_t i = 1; i < n; i++)
        started[i] = pthread_create(&thread[i], NULL, work, element + i * size) == 0;
    for (size_t i = 0; i < n; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
        else
            work(element + i * size);
}
