/* Linked lists whose nodes their owner makes one by one, and which another rank walks: each rank walks the list
 * of the next one. A node leads to the one behind it; only the first one is sent in a message.
 *
 *   attached   a dynamic window: each node is attached, and its successor is an address
 *   handles    memory handles of libfompi: the successor is a packed handle, and an access needs no epoch
 */
#include "../example.h"
#include "../handles.h"

/* The successor of a node: what a variant needs to get there. All bytes 0: there is none. */
typedef struct {
    char bytes[FOMPI_MEM_BYTES];
} Link;

typedef struct {
    long value;
    Link next;
} Node;

typedef struct {
    int rank, size;
    long length;
    MPI_Win win;
    Node **nodes;    /* of this rank */
    FOMPI_Mem *mems; /* their handles */
} List;

static long value_of(int rank, long index) { return 1000003L * rank + 7 * index; }

static int is_end(const Link *link) {
    static const Link end;
    return memcmp(link, &end, sizeof end) == 0;
}

/* Makes the nodes from the last one to the first one. Returns the way to the first one. */
static Link make_list(List *list, int by_handles) {
    Link next = {{0}};
    for (long i = list->length - 1; i >= 0; i--) {
        Node *node = malloc(sizeof *node);
        *node = (Node){value_of(list->rank, i), next};
        memset(&next, 0, sizeof next);
        if (by_handles) {
            FOMPI_Mem_expose(node, sizeof *node, MPI_INFO_NULL, list->win, &list->mems[i]);
            FOMPI_Mem_pack(list->mems[i], &next);
        } else {
            MPI_Aint address;
            MPI_Win_attach(list->win, node, sizeof *node);
            MPI_Get_address(node, &address);
            memcpy(&next, &address, sizeof address);
        }
        list->nodes[i] = node;
    }
    return next;
}

/* Nodes end one by one, as they have come. */
static void free_list(List *list, int by_handles) {
    for (long i = 0; i < list->length; i++) {
        if (by_handles) FOMPI_Mem_withdraw(&list->mems[i]);
        else MPI_Win_detach(list->win, list->nodes[i]);
        free(list->nodes[i]);
    }
}

static Node node_behind(List *list, const Link *link, int owner, int by_handles) {
    Node node;
    if (by_handles) {
        FOMPI_Mem mem;
        FOMPI_Mem_unpack(link, list->win, &mem);
        FOMPI_Mem_get(&node, sizeof node, MPI_BYTE, mem, 0, FOMPI_BLOCKING);
        FOMPI_Mem_release(&mem);
    } else {
        MPI_Aint address;
        memcpy(&address, link, sizeof address);
        MPI_Get(&node, sizeof node, MPI_BYTE, owner, address, sizeof node, MPI_BYTE, list->win);
        MPI_Win_flush(owner, list->win);
    }
    return node;
}

static int run(List *list, const char *variant, int by_handles) {
    const int next = (list->rank + 1) % list->size, before = (list->rank + list->size - 1) % list->size;
    Link own = make_list(list, by_handles), link;
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, before, 0, &link, sizeof link, MPI_BYTE, next, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!by_handles) MPI_Win_lock_all(0, list->win);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    long found = 0;
    int is_right = 1;
    while (!is_end(&link)) {
        Node node = node_behind(list, &link, next, by_handles);
        is_right &= node.value == value_of(next, found++);
        link = node.next;
    }
    double seconds = MPI_Wtime() - start;
    if (!by_handles) MPI_Win_unlock_all(list->win);
    MPI_Barrier(MPI_COMM_WORLD);
    free_list(list, by_handles);
    is_right &= found == list->length;
    return example_result("chains", variant, seconds, is_right, "length=%ld us_per_node=%.3f", list->length,
                          1e6 * seconds / (double)list->length);
}

int main(int argc, char **argv) {
    Option options[] = {
        {"length", "1000", "nodes of each rank"},
        {"variant", "all", "attached,handles or all"},
        {NULL, NULL, NULL},
    };
    example_begin(&argc, &argv, "Lists that other ranks walk, whose nodes come and go one by one.", options);
    List list = {.length = option_number(options, "length", 1)};
    MPI_Comm_rank(MPI_COMM_WORLD, &list.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &list.size);
    list.nodes = malloc((size_t)list.length * sizeof *list.nodes);
    list.mems = malloc((size_t)list.length * sizeof *list.mems);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &list.win);
    int is_right = 1;
    if (option_has_variant(options, "attached")) is_right &= run(&list, "attached", 0);
    if (option_has_variant(options, "handles")) {
        if (has_handles()) is_right &= run(&list, "handles", 1);
        else if (list.rank == 0) fprintf(stderr, "variant handles is left out: it needs libfompi\n");
    }
    MPI_Win_free(&list.win);
    free(list.mems);
    free(list.nodes);
    MPI_Finalize();
    return !is_right;
}
