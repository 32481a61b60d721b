/* An MPI that libfompi does not know: it has every function that libfompi exports, writes down with
 * which words each is called, and answers with the function's number. VERSION is what it says of
 * itself. Without EVERYTHING it has no functions of windows at all. */
#include "signatures.h"
#include <string.h>

#define WORDS 16
typedef unsigned long word;

word seen[WORDS];
const char *called;
int raised, classes;
const char *text_of_class;
void *communicator;

#ifdef EVERYTHING
enum {
#define X(name, arguments) NUMBER_##name,
    EACH(X)
#undef X
};

static word note(const char *name, word number, const word *words) {
    called = name;
    memcpy(seen, words, sizeof seen);
    return number + 1;
}

#define X(name, arguments) \
    word name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, \
              word k, word l, word m, word n, word o, word p) { \
        return note(#name, NUMBER_##name, \
                    (word[WORDS]){a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p}); \
    }
EACH(X)
#undef X
#endif

int PMPI_Comm_size(void *comm, int *size) {
    (void)comm;
    *size = 1;
    return 0;
}

int PMPI_Get_library_version(char *version, int *length) {
    strcpy(version, VERSION);
    *length = (int)strlen(version);
    return 0;
}

int PMPI_Add_error_class(int *class) {
    classes++;
    *class = 777;
    return 0;
}

int PMPI_Add_error_string(int class, const char *text) {
    (void)class;
    text_of_class = strdup(text);
    return 0;
}

int PMPI_Comm_call_errhandler(void *comm, int code) {
    communicator = comm;
    raised = code;
    return 0;
}
