// A window that the host MPI implements has no counters: each call returns MPI_ERR_UNSUPPORTED_OPERATION,
// and MPI_Error_string has the reason. The simulated nodes of this program share the memory of one
// machine, so the MPI makes a shared window for ranks that are on several nodes for libfompi. Issue 59
// of the MPI Forum. The plain MPI has none.
// ranks: 2
// settings: FOMPI_RANKS_PER_NODE=1 FOMPI_NET=tcp

#include "notified.h"

static MPI_Win win;

static void refused(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    EXPECT(code, MPI_ERR_UNSUPPORTED_OPERATION);
    text_of(code, text);
    CHECK(strstr(text, call) != NULL);
    CHECK(strstr(text, "FOMPI-E141") != NULL);
}

#define REFUSED(call, ...) refused(#call ":", call(__VA_ARGS__))

static void expect_refusals(void)
{
    int word = 0, index;
    MPI_Count value;
    MPI_Request request;
    REFUSED(FOMPI_Win_set_num_notify, win, MPI_INFO_NULL, 1);
    REFUSED(FOMPI_Win_get_num_notify, win, 0, &index);
    REFUSED(FOMPI_Win_get_notify_value, win, 0, &value);
    REFUSED(FOMPI_Win_reset_notify_value, win, 0, &value);
    REFUSED(FOMPI_Win_wait_notify, win, 0, 1);
    REFUSED(FOMPI_Win_wait_any_notify, win, 0, 1, 1, &index);
    REFUSED(FOMPI_Win_notify_request, win, 0, 1, &request);
    OK(MPI_Win_lock_all(0, win));
    REFUSED(FOMPI_Put_notify, &word, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, win);
    REFUSED(FOMPI_Rget_notify, &word, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, win, &request);
    REFUSED(FOMPI_Accumulate_notify, &word, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, 0, win);
    REFUSED(FOMPI_Rfetch_and_op, &word, &word, MPI_INT, 0, 0, MPI_NO_OP, win, &request);
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_notified()) {
        MPI_Comm node;
        int ranks, *base;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        OK(MPI_Comm_size(node, &ranks));
        OK(MPI_Win_allocate_shared(64, sizeof(int), MPI_INFO_NULL, node, &base, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (ranks > 1)
            expect_refusals();
        else // the nodes are not simulated, and the window is the library's
            OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1));
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&node));
    }
    return check_end();
}
