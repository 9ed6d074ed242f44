/* mpi.c -- messages between ranks over MPI-3: nonblocking point-to-point messages only.
 *
 * tenon compiles this file when it builds a program, with the mpicc of the machine, because
 * programs for Open MPI and for MPICH link differently.  Collectives are not used: their order of
 * additions depends on the number of ranks, the length and the library, and they cannot report
 * which rank is late.
 */
#include "base/error.h"
#include "comm/transport.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Request *request;
static int *free_slot; /* a stack of the slots that are not in use */
static int slots, nfree;

static void mpi_join_run(double limit, int *rank, int *size, int *local_rank, int *local_size)
{
    int provided;
    MPI_Comm here;
    (void)limit; /* MPI_Init has no time limit */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED) {
        fprintf(stderr, "this MPI does not allow threads (it provides level %d, %d is needed)\n",
                provided, MPI_THREAD_SERIALIZED);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, *rank, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, local_rank);
    MPI_Comm_size(here, local_size);
    MPI_Comm_free(&here);
}

static const char *mpi_describe(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",\n")] = '\0';
    return text;
}

static void mpi_make_room(int requests)
{
    if (requests <= slots)
        return;
    request = realloc(request, sizeof *request * (size_t)requests);
    free_slot = realloc(free_slot, sizeof *free_slot * (size_t)requests);
    if (!request || !free_slot)
        rt_die("out of memory for %d messages between ranks", requests);
    while (slots < requests)
        free_slot[nfree++] = slots++;
}

static int slot(void)
{
    if (nfree == 0)
        rt_die("more than %d messages are pending, and no more were planned: this is a fault of "
               "tenon",
               slots);
    return free_slot[--nfree];
}

static int mpi_begin_send(int to, int tag, const void *from, int bytes)
{
    const int i = slot();
    MPI_Isend(from, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request[i]);
    return i;
}

static int mpi_begin_receive(int from, int tag, void *to, int bytes)
{
    const int i = slot();
    MPI_Irecv(to, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request[i]);
    return i;
}

static bool mpi_done(int i)
{
    int flag;
    MPI_Test(&request[i], &flag, MPI_STATUS_IGNORE);
    if (flag)
        free_slot[nfree++] = i;
    return flag;
}

static int mpi_waiting(int tag)
{
    int flag;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &status);
    return flag ? status.MPI_SOURCE : -1;
}

static void mpi_leave(void)
{
    MPI_Finalize();
}

static void mpi_end_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

const RtTransport rt_mpi = {.name = "mpi",
                            .asks = true,
                            .open = mpi_join_run,
                            .describe = mpi_describe,
                            .room = mpi_make_room,
                            .send = mpi_begin_send,
                            .receive = mpi_begin_receive,
                            .done = mpi_done,
                            .waiting = mpi_waiting,
                            .close = mpi_leave,
                            .abort = mpi_end_all};
