// Notified access with the arguments that Bull's Open MPI has, under the names that Intel MPI has as
// well. Each function notes what it was called with. Two of them take what neither has: numbers in
// floating point, and more arguments than registers hold.

#include <string.h>

#define WORDS 9

const char *bull_called = "nothing";
unsigned long bull_words[WORDS];
double bull_numbers[8];

static int note(const char *name, int count, const unsigned long *words)
{
    bull_called = name;
    memset(bull_words, 0, sizeof bull_words);
    memcpy(bull_words, words, (size_t)count * sizeof *words);
    return 4711;
}

#define W unsigned long
#define BOTH(name, count, arguments, ...)                                                         \
    int M##name arguments { return note("M" #name, count, (W[]){__VA_ARGS__}); }                  \
    int PM##name arguments { return note("PM" #name, count, (W[]){__VA_ARGS__}); }

BOTH(PIX_Win_create_notify, 6, (W base, W size, int unit, W info, W comm, W win),
     base, size, (W)unit, info, comm, win)
BOTH(PIX_Win_free_notify, 1, (W win), win)
BOTH(PIX_Win_get_notify, 3, (W win, int id, W flag), win, (W)id, flag)
BOTH(PIX_Win_set_notify, 2, (W win, int id), win, (W)id)
BOTH(PIX_Win_get_notify_request, 3, (W win, int id, W request), win, (W)id, request)
BOTH(PIX_Put_notify, 9,
     (W origin, int count, W type, int rank, W disp, int target_count, W target_type, W win, int id),
     origin, (W)count, type, (W)rank, disp, (W)target_count, target_type, win, (W)id)
BOTH(PIX_Get_notify, 9,
     (W origin, int count, W type, int rank, W disp, int target_count, W target_type, W win, int id),
     origin, (W)count, type, (W)rank, disp, (W)target_count, target_type, win, (W)id)

double MPIX_Put_notify_c(double a, double b, double c, double d, double e, double f, double g,
                         double h, W i, W j, W k, W l, W m, W n, W o, W p, W q)
{
    memcpy(bull_numbers, (double[]){a, b, c, d, e, f, g, h}, sizeof bull_numbers);
    note("MPIX_Put_notify_c", WORDS, (W[]){i, j, k, l, m, n, o, p, q});
    return a + h;
}

double PMPIX_Put_notify_c(double a, double b, double c, double d, double e, double f, double g,
                          double h, W i, W j, W k, W l, W m, W n, W o, W p, W q)
{
    double answer = MPIX_Put_notify_c(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
    bull_called = "PMPIX_Put_notify_c";
    return answer;
}
