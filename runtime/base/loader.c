/* loader.c -- a queue of jobs with a mutex and two condition variables; see loader.h. */
#include "base/loader.h"
#include "base/error.h"
#include "base/threads.h"
#include <pthread.h>
#include <string.h>

enum { ROOM = 4 };

struct Loader {
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
    struct {
        void (*job)(void *);
        void *arg;
    } queue[ROOM];
    unsigned head, tail; /* jobs finished, jobs posted */
};

static void *loader_thread(void *arg)
{
    Loader *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->head == l->tail)
            pthread_cond_wait(&l->posted, &l->lock);
        void (*job)(void *) = l->queue[l->head % ROOM].job;
        void *job_arg = l->queue[l->head % ROOM].arg;
        pthread_mutex_unlock(&l->lock);
        job(job_arg);
        pthread_mutex_lock(&l->lock);
        l->head++;
        pthread_cond_broadcast(&l->done);
    }
    return NULL;
}

Loader *loader_new(void)
{
    Loader *l = rt_alloc(sizeof *l);
    pthread_t id;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->posted, NULL);
    pthread_cond_init(&l->done, NULL);
    const int error = threads_start(&id, loader_thread, l);
    if (error)
        rt_die("the loader thread could not be started: %s", strerror(error));
    pthread_detach(id);
    return l;
}

void loader_post(Loader *l, void (*job)(void *), void *arg)
{
    pthread_mutex_lock(&l->lock);
    while (l->tail - l->head == ROOM)
        pthread_cond_wait(&l->done, &l->lock);
    l->queue[l->tail % ROOM].job = job;
    l->queue[l->tail % ROOM].arg = arg;
    l->tail++;
    pthread_cond_signal(&l->posted);
    pthread_mutex_unlock(&l->lock);
}

void loader_wait(Loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->head != l->tail)
        pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}
