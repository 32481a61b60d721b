/* Fortran's events of coarrays on notified puts: EVENT POST adds 1 to an event of another image, EVENT
 * WAIT (UNTIL_COUNT) returns when the event has that count and takes it away. A wait sleeps; no loop looks
 * at a variable.
 *
 * Image 0 gives each other image a piece of work; an image posts an event when its result is there, and
 * image 0 waits for the events of all. */
#include "../notify.h"

static Option options[] = {{"rounds", "100", "pieces of each image"}, {NULL, NULL, NULL}};

enum { WORK, DONE, EVENTS };

static MPI_Win coarrays;
static MPI_Count taken[EVENTS]; /* of the posts of each event of this image */

/* EVENT POST (event[image]): what this image has put before is there, for all images. */
static void event_post(int image, int event) {
    MPI_Win_flush_all(coarrays);
    FOMPI_Put_notify(NULL, 0, MPI_BYTE, image, 0, 0, MPI_BYTE, event, coarrays);
}

/* A put of a number into a coarray of an image, and EVENT POST behind it in one. */
static void put_and_post(int image, int element, double value, int event) {
    FOMPI_Put_notify(&value, 1, MPI_DOUBLE, image, element, 1, MPI_DOUBLE, event, coarrays);
    MPI_Win_flush_local(image, coarrays);
}

/* EVENT WAIT (event, UNTIL_COUNT=count). */
static void event_wait(int event, int count) {
    taken[event] += count;
    FOMPI_Win_wait_notify(coarrays, event, taken[event]);
}

/* CALL EVENT_QUERY (event, count). */
static int event_query(int event) {
    MPI_Count posted;
    FOMPI_Win_get_notify_value(coarrays, event, &posted);
    return (int)(posted - taken[event]);
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "Work and results by events, as coarrays have them.", options);
    int me, images, rounds = (int)option_number(options, "rounds", 1), is_right = 1;
    if (!has_notify()) {
        fprintf(stderr, "coarray_event: start it with fompirun: it needs libfompi\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &images);
    double *box, begin = MPI_Wtime(); /* image 0: a result of each image; others: the piece */
    int others = images - 1;
    MPI_Win_allocate(images * (MPI_Aint)sizeof *box, sizeof *box, MPI_INFO_NULL, MPI_COMM_WORLD, &box,
                     &coarrays);
    FOMPI_Win_set_num_notify(coarrays, MPI_INFO_NULL, EVENTS);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, coarrays);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds && others > 0; round++) {
        if (me == 0) {
            for (int image = 1; image < images; image++)
                put_and_post(image, 0, image * 1000.0 + round, WORK);
            event_wait(DONE, others);
            for (int image = 1; image < images; image++)
                is_right &= box[image] == 2 * (image * 1000.0 + round);
        } else {
            event_wait(WORK, 1);
            double result = 2 * box[0];
            MPI_Put(&result, 1, MPI_DOUBLE, 0, me, 1, MPI_DOUBLE, coarrays);
            event_post(0, DONE);
        }
    }
    is_right &= event_query(WORK) == 0 && event_query(DONE) == 0;
    is_right = example_result("coarray_event", "work", MPI_Wtime() - begin, is_right, "rounds=%d", rounds);
    MPI_Win_unlock_all(coarrays);
    MPI_Win_free(&coarrays);
    return example_end(is_right);
}
