/* A subset of OpenSHMEM 1.5 on memory handles of libfompi: the symmetric heap and symmetric variables of
 * the program, put and get, strided ones, atomics, put with signal, waits, contexts. Collectives but
 * barriers, teams, locks and Fortran are not there. Programs in C with GNU extensions (gcc, clang). */
#ifndef SHMEM_H
#define SHMEM_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* A context: a duplicate of the window, which completes by itself. */
typedef struct shmem_context *shmem_ctx_t;
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)0)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)-1)
enum { SHMEM_CTX_PRIVATE = 1, SHMEM_CTX_SERIALIZED = 2, SHMEM_CTX_NOSTORE = 4 };
enum { SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE };
enum { SHMEM_CMP_EQ = 1, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE };
enum { SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD };

/* Start and end. shmem_init may follow MPI_Init. */
void shmem_init(void);
int shmem_init_thread(int requested, int *provided);
void shmem_query_thread(int *provided);
void shmem_finalize(void);
void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);

/* The symmetric heap, of SHMEM_SYMMETRIC_SIZE bytes. */
void *shmem_malloc(size_t bytes);
void *shmem_calloc(size_t count, size_t bytes);
void *shmem_align(size_t alignment, size_t bytes);
void *shmem_realloc(void *memory, size_t bytes);
void shmem_free(void *memory);
void *shmem_ptr(const void *object, int pe);
int shmem_addr_accessible(const void *object, int pe);
int shmem_pe_accessible(int pe);

void shmem_barrier_all(void);
void shmem_sync_all(void);
void shmem_quiet(void);
void shmem_fence(void);
int shmem_ctx_create(long options, shmem_ctx_t *context);
void shmem_ctx_destroy(shmem_ctx_t context);
void shmem_ctx_quiet(shmem_ctx_t context);
void shmem_ctx_fence(shmem_ctx_t context);

/* What all calls below come down to. `nbi`: buffers are in use until shmem_quiet. */
void shmem_put_bytes(shmem_ctx_t context, void *to, const void *from, size_t bytes, int pe, int nbi);
void shmem_get_bytes(shmem_ctx_t context, void *to, const void *from, size_t bytes, int pe, int nbi);
void shmem_put_strided(shmem_ctx_t context, void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from,
                       size_t count, size_t bytes, int pe);
void shmem_get_strided(shmem_ctx_t context, void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from,
                       size_t count, size_t bytes, int pe);
void shmem_atomic(shmem_ctx_t context, void *object, const void *value, void *before, MPI_Datatype type, MPI_Op op,
                  int pe);
void shmem_swap_if(shmem_ctx_t context, void *object, const void *compare, const void *value, void *before,
                   MPI_Datatype type, int pe);
void shmem_signal(shmem_ctx_t context, uint64_t *signal, uint64_t value, int op, int pe);
void shmem_pause(void);

static inline uint64_t shmem_signal_fetch(const uint64_t *signal) { return *(const volatile uint64_t *)signal; }

/* The context of a call that names none; those that name one have it by the same name. */
static const shmem_ctx_t shmem_context __attribute__((unused)) = SHMEM_CTX_DEFAULT;

/* The macros below are for any type, as OpenSHMEM's generic calls: with a context ahead, or without. */
#define SHMEM_PICK3(a, b, c, name, ...) name
#define SHMEM_PICK4(a, b, c, d, name, ...) name
#define SHMEM_PICK5(a, b, c, d, e, name, ...) name
#define SHMEM_PICK6(a, b, c, d, e, f, name, ...) name
#define SHMEM_PICK7(a, b, c, d, e, f, g, name, ...) name
#define SHMEM_PICK8(a, b, c, d, e, f, g, h, name, ...) name
#define SHMEM_TYPE(value) _Generic((value), \
    float: MPI_FLOAT, double: MPI_DOUBLE, int: MPI_INT, long: MPI_LONG, long long: MPI_LONG_LONG, \
    unsigned: MPI_UNSIGNED, unsigned long: MPI_UNSIGNED_LONG, unsigned long long: MPI_UNSIGNED_LONG_LONG)
#define SHMEM_COMPARE(a, how, b) ((how) == SHMEM_CMP_EQ ? (a) == (b) : (how) == SHMEM_CMP_NE ? (a) != (b) \
    : (how) == SHMEM_CMP_GT ? (a) > (b) : (how) == SHMEM_CMP_GE ? (a) >= (b) \
    : (how) == SHMEM_CMP_LT ? (a) < (b) : (a) <= (b))

#define SHMEM_PUT(to, from, count, pe) shmem_put_bytes(shmem_context, (void *)(to), (from), (count) * sizeof *(to), (pe), 0)
#define SHMEM_GET(to, from, count, pe) shmem_get_bytes(shmem_context, (to), (void *)(from), (count) * sizeof *(to), (pe), 0)
#define SHMEM_PUT_NBI(to, from, count, pe) shmem_put_bytes(shmem_context, (void *)(to), (from), (count) * sizeof *(to), (pe), 1)
#define SHMEM_GET_NBI(to, from, count, pe) shmem_get_bytes(shmem_context, (to), (void *)(from), (count) * sizeof *(to), (pe), 1)
#define SHMEM_P(to, value, pe) \
    ({ __typeof__(*(to)) value_ = (value); shmem_put_bytes(shmem_context, (void *)(to), (void *)&value_, sizeof value_, (pe), 0); })
#define SHMEM_G(from, pe) ({ __typeof__((__typeof__(*(from)))*(from)) got_; \
    shmem_get_bytes(shmem_context, (void *)&got_, (void *)(from), sizeof got_, (pe), 0); got_; })
#define SHMEM_IPUT(to, from, stride_to, stride_from, count, pe) \
    shmem_put_strided(shmem_context, (to), (from), (stride_to), (stride_from), (count), sizeof *(to), (pe))
#define SHMEM_IGET(to, from, stride_to, stride_from, count, pe) \
    shmem_get_strided(shmem_context, (to), (from), (stride_to), (stride_from), (count), sizeof *(to), (pe))
#define SHMEM_PUT_SIGNAL(to, from, count, signal, value, op, pe) \
    (SHMEM_PUT((to), (from), (count), (pe)), shmem_signal(shmem_context, (signal), (value), (op), (pe)))
#define SHMEM_ATOMIC(object, value, op, pe) ({ __typeof__(*(object)) value_ = (value); \
    shmem_atomic(shmem_context, (void *)(object), (void *)&value_, NULL, SHMEM_TYPE(*(object)), (op), (pe)); })
#define SHMEM_FETCHING(object, value, op, pe) ({ \
    __typeof__(*(object)) value_ = (value), before_ = 0; \
    shmem_atomic(shmem_context, (void *)(object), (void *)&value_, (void *)&before_, SHMEM_TYPE(*(object)), (op), (pe)); before_; })
#define SHMEM_CSWAP(object, compare, value, pe) ({ \
    __typeof__(*(object)) compare_ = (compare), value_ = (value), before_ = 0; \
    shmem_swap_if(shmem_context, (void *)(object), (void *)&compare_, (void *)&value_, (void *)&before_, SHMEM_TYPE(*(object)), (pe)); \
    before_; })
#define shmem_wait_until(object, how, value) ({ \
    while (!SHMEM_COMPARE(*(const volatile __typeof__(*(object)) *)(object), (how), (value))) shmem_pause(); })
#define shmem_test(object, how, value) ({ shmem_pause(); \
    SHMEM_COMPARE(*(const volatile __typeof__(*(object)) *)(object), (how), (value)); })

/* The same for each type by name. */
#define SHMEM_TYPED(CTX, NAME, T, ...) \
    static inline void shmem_##CTX##NAME##_put(__VA_ARGS__ T *to, const T *from, size_t count, int pe) { \
        SHMEM_PUT(to, from, count, pe); } \
    static inline void shmem_##CTX##NAME##_get(__VA_ARGS__ T *to, const T *from, size_t count, int pe) { \
        SHMEM_GET(to, from, count, pe); } \
    static inline void shmem_##CTX##NAME##_put_nbi(__VA_ARGS__ T *to, const T *from, size_t count, int pe) { \
        SHMEM_PUT_NBI(to, from, count, pe); } \
    static inline void shmem_##CTX##NAME##_get_nbi(__VA_ARGS__ T *to, const T *from, size_t count, int pe) { \
        SHMEM_GET_NBI(to, from, count, pe); } \
    static inline void shmem_##CTX##NAME##_p(__VA_ARGS__ T *to, T value, int pe) { SHMEM_P(to, value, pe); } \
    static inline T shmem_##CTX##NAME##_g(__VA_ARGS__ const T *from, int pe) { \
        T got; shmem_get_bytes(shmem_context, &got, from, sizeof got, pe, 0); return got; } \
    static inline void shmem_##CTX##NAME##_iput(__VA_ARGS__ T *to, const T *from, ptrdiff_t stride_to, \
                                                ptrdiff_t stride_from, size_t count, int pe) { \
        SHMEM_IPUT(to, from, stride_to, stride_from, count, pe); } \
    static inline void shmem_##CTX##NAME##_iget(__VA_ARGS__ T *to, const T *from, ptrdiff_t stride_to, \
                                                ptrdiff_t stride_from, size_t count, int pe) { \
        SHMEM_IGET(to, from, stride_to, stride_from, count, pe); } \
    static inline void shmem_##CTX##NAME##_put_signal(__VA_ARGS__ T *to, const T *from, size_t count, \
                                                      uint64_t *signal, uint64_t value, int op, int pe) { \
        SHMEM_PUT_SIGNAL(to, from, count, signal, value, op, pe); } \
    static inline void shmem_##CTX##NAME##_put_signal_nbi(__VA_ARGS__ T *to, const T *from, size_t count, \
                                                          uint64_t *signal, uint64_t value, int op, int pe) { \
        SHMEM_PUT_SIGNAL(to, from, count, signal, value, op, pe); }
#define SHMEM_TYPED_WAITS(NAME, T) \
    static inline void shmem_##NAME##_wait_until(T *object, int how, T value) { \
        shmem_wait_until(object, how, value); } \
    static inline int shmem_##NAME##_test(T *object, int how, T value) { return shmem_test(object, how, value); }
#define SHMEM_TYPED_SWAPS(CTX, NAME, T, ...) \
    static inline T shmem_##CTX##NAME##_atomic_fetch(__VA_ARGS__ const T *object, int pe) { \
        T none = 0, before = 0; \
        shmem_atomic(shmem_context, (void *)object, &none, &before, SHMEM_TYPE(none), MPI_NO_OP, pe); return before; } \
    static inline void shmem_##CTX##NAME##_atomic_set(__VA_ARGS__ T *object, T value, int pe) { \
        SHMEM_ATOMIC(object, value, MPI_REPLACE, pe); } \
    static inline T shmem_##CTX##NAME##_atomic_swap(__VA_ARGS__ T *object, T value, int pe) { \
        return SHMEM_FETCHING(object, value, MPI_REPLACE, pe); } \
    static inline void shmem_##CTX##NAME##_atomic_fetch_nbi(__VA_ARGS__ T *before, const T *object, int pe) { \
        T none = 0; shmem_atomic(shmem_context, (void *)object, &none, before, SHMEM_TYPE(none), MPI_NO_OP, pe); } \
    static inline void shmem_##CTX##NAME##_atomic_swap_nbi(__VA_ARGS__ T *before, T *object, T value, int pe) { \
        *before = SHMEM_FETCHING(object, value, MPI_REPLACE, pe); }
#define SHMEM_TYPED_OP(CTX, NAME, T, WHAT, OP, ...) \
    static inline void shmem_##CTX##NAME##_atomic_##WHAT(__VA_ARGS__ T *object, T value, int pe) { \
        SHMEM_ATOMIC(object, value, OP, pe); } \
    static inline T shmem_##CTX##NAME##_atomic_fetch_##WHAT(__VA_ARGS__ T *object, T value, int pe) { \
        return SHMEM_FETCHING(object, value, OP, pe); } \
    static inline void shmem_##CTX##NAME##_atomic_fetch_##WHAT##_nbi(__VA_ARGS__ T *before, T *object, T value, \
                                                                     int pe) { \
        *before = SHMEM_FETCHING(object, value, OP, pe); }
#define SHMEM_TYPED_ATOMICS(CTX, NAME, T, ...) \
    SHMEM_TYPED_OP(CTX, NAME, T, add, MPI_SUM, __VA_ARGS__) \
    static inline void shmem_##CTX##NAME##_atomic_inc(__VA_ARGS__ T *object, int pe) { \
        SHMEM_ATOMIC(object, 1, MPI_SUM, pe); } \
    static inline T shmem_##CTX##NAME##_atomic_fetch_inc(__VA_ARGS__ T *object, int pe) { \
        return SHMEM_FETCHING(object, 1, MPI_SUM, pe); } \
    static inline void shmem_##CTX##NAME##_atomic_fetch_inc_nbi(__VA_ARGS__ T *before, T *object, int pe) { \
        *before = SHMEM_FETCHING(object, 1, MPI_SUM, pe); } \
    static inline T shmem_##CTX##NAME##_atomic_compare_swap(__VA_ARGS__ T *object, T compare, T value, int pe) { \
        return SHMEM_CSWAP(object, compare, value, pe); } \
    static inline void shmem_##CTX##NAME##_atomic_compare_swap_nbi(__VA_ARGS__ T *before, T *object, T compare, \
                                                                   T value, int pe) { \
        *before = SHMEM_CSWAP(object, compare, value, pe); }
#define SHMEM_BITS(X) X(uint, unsigned) X(ulong, unsigned long) X(ulonglong, unsigned long long) \
    X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
#define SHMEM_WHOLE(X) SHMEM_BITS(X) X(int, int) X(long, long) X(longlong, long long) X(size, size_t) \
    X(ptrdiff, ptrdiff_t)
#define SHMEM_ALL(X) SHMEM_WHOLE(X) X(float, float) X(double, double)
#define SHMEM_MORE(X) X(longdouble, long double) X(char, char) X(schar, signed char) X(short, short) \
    X(uchar, unsigned char) X(ushort, unsigned short) X(int8, int8_t) X(int16, int16_t) X(uint8, uint8_t) \
    X(uint16, uint16_t)
#define SHMEM_CONTEXT shmem_ctx_t shmem_context,
#define SHMEM_OF_TYPE(NAME, T) SHMEM_TYPED(, NAME, T, ) SHMEM_TYPED(ctx_, NAME, T, SHMEM_CONTEXT) \
    SHMEM_TYPED_WAITS(NAME, T)
#define SHMEM_SWAPS_OF(NAME, T) SHMEM_TYPED_SWAPS(, NAME, T, ) SHMEM_TYPED_SWAPS(ctx_, NAME, T, SHMEM_CONTEXT)
#define SHMEM_ATOMICS_OF(NAME, T) SHMEM_TYPED_ATOMICS(, NAME, T, ) SHMEM_TYPED_ATOMICS(ctx_, NAME, T, SHMEM_CONTEXT)
#define SHMEM_BITS_OF_CTX(CTX, NAME, T, ...) SHMEM_TYPED_OP(CTX, NAME, T, and, MPI_BAND, __VA_ARGS__) \
    SHMEM_TYPED_OP(CTX, NAME, T, or, MPI_BOR, __VA_ARGS__) SHMEM_TYPED_OP(CTX, NAME, T, xor, MPI_BXOR, __VA_ARGS__)
#define SHMEM_BITS_OF(NAME, T) SHMEM_BITS_OF_CTX(, NAME, T, ) SHMEM_BITS_OF_CTX(ctx_, NAME, T, SHMEM_CONTEXT)
SHMEM_ALL(SHMEM_OF_TYPE)
SHMEM_MORE(SHMEM_OF_TYPE)
SHMEM_ALL(SHMEM_SWAPS_OF)
SHMEM_WHOLE(SHMEM_ATOMICS_OF)
SHMEM_BITS(SHMEM_BITS_OF)

/* The same for elements of so many bits, and for bytes. */
#define SHMEM_SIZED(BITS) \
    static inline void shmem_put##BITS(void *to, const void *from, size_t count, int pe) { \
        shmem_put_bytes(shmem_context, to, from, count * (BITS / 8), pe, 0); } \
    static inline void shmem_get##BITS(void *to, const void *from, size_t count, int pe) { \
        shmem_get_bytes(shmem_context, to, from, count * (BITS / 8), pe, 0); } \
    static inline void shmem_put##BITS##_nbi(void *to, const void *from, size_t count, int pe) { \
        shmem_put_bytes(shmem_context, to, from, count * (BITS / 8), pe, 1); } \
    static inline void shmem_get##BITS##_nbi(void *to, const void *from, size_t count, int pe) { \
        shmem_get_bytes(shmem_context, to, from, count * (BITS / 8), pe, 1); } \
    static inline void shmem_iput##BITS(void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from, \
                                        size_t count, int pe) { \
        shmem_put_strided(shmem_context, to, from, stride_to, stride_from, count, BITS / 8, pe); } \
    static inline void shmem_iget##BITS(void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from, \
                                        size_t count, int pe) { \
        shmem_get_strided(shmem_context, to, from, stride_to, stride_from, count, BITS / 8, pe); }
SHMEM_SIZED(8) SHMEM_SIZED(16) SHMEM_SIZED(32) SHMEM_SIZED(64) SHMEM_SIZED(128)
#define shmem_putmem shmem_put8
#define shmem_getmem shmem_get8
#define shmem_putmem_nbi shmem_put8_nbi
#define shmem_getmem_nbi shmem_get8_nbi
#define shmem_putmem_signal(to, from, bytes, signal, value, op, pe) \
    SHMEM_PUT_SIGNAL((char *)(to), (const char *)(from), (bytes), (signal), (value), (op), (pe))
#define shmem_signal_wait_until(signal, how, value) \
    ({ shmem_wait_until((signal), (how), (value)); shmem_signal_fetch(signal); })

/* The generic calls of C11, which may have a context ahead: a call with one argument more has one. */
#define SHMEM_PLAIN(CALL, ...) CALL(__VA_ARGS__)
#define SHMEM_WITH_CTX(CALL, context, ...) ({ const shmem_ctx_t shmem_context = (context); CALL(__VA_ARGS__); })
#define SHMEM_2(CALL, ...) SHMEM_PICK3(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define SHMEM_3(CALL, ...) SHMEM_PICK4(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define SHMEM_4(CALL, ...) SHMEM_PICK5(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define SHMEM_5(CALL, ...) SHMEM_PICK6(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define SHMEM_6(CALL, ...) SHMEM_PICK7(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define SHMEM_7(CALL, ...) SHMEM_PICK8(__VA_ARGS__, SHMEM_WITH_CTX, SHMEM_PLAIN, )(CALL, __VA_ARGS__)
#define shmem_put(...) SHMEM_4(SHMEM_PUT, __VA_ARGS__)
#define shmem_get(...) SHMEM_4(SHMEM_GET, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEM_4(SHMEM_PUT_NBI, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEM_4(SHMEM_GET_NBI, __VA_ARGS__)
#define shmem_p(...) SHMEM_3(SHMEM_P, __VA_ARGS__)
#define shmem_g(...) SHMEM_2(SHMEM_G, __VA_ARGS__)
#define shmem_iput(...) SHMEM_6(SHMEM_IPUT, __VA_ARGS__)
#define shmem_iget(...) SHMEM_6(SHMEM_IGET, __VA_ARGS__)
#define shmem_put_signal(...) SHMEM_7(SHMEM_PUT_SIGNAL, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_7(SHMEM_PUT_SIGNAL, __VA_ARGS__)
#define SHMEM_FETCH(object, pe) ({ __typeof__((__typeof__(*(object)))*(object)) none_ = 0, got_; \
    shmem_atomic(shmem_context, (void *)(object), &none_, &got_, SHMEM_TYPE(none_), MPI_NO_OP, (pe)); got_; })
#define shmem_atomic_fetch(...) SHMEM_2(SHMEM_FETCH, __VA_ARGS__)
#define SHMEM_FETCH_NBI(before, object, pe) (*(before) = SHMEM_FETCH(object, pe))
#define shmem_atomic_fetch_nbi(...) SHMEM_3(SHMEM_FETCH_NBI, __VA_ARGS__)
#define SHMEM_INC(object, pe) SHMEM_ATOMIC(object, 1, MPI_SUM, pe)
#define shmem_atomic_inc(...) SHMEM_2(SHMEM_INC, __VA_ARGS__)
#define SHMEM_FETCH_INC(object, pe) SHMEM_FETCHING(object, 1, MPI_SUM, pe)
#define shmem_atomic_fetch_inc(...) SHMEM_2(SHMEM_FETCH_INC, __VA_ARGS__)
#define SHMEM_FETCH_INC_NBI(before, object, pe) (*(before) = SHMEM_FETCH_INC(object, pe))
#define shmem_atomic_fetch_inc_nbi(...) SHMEM_3(SHMEM_FETCH_INC_NBI, __VA_ARGS__)
#define SHMEM_SET(object, value, pe) SHMEM_ATOMIC(object, value, MPI_REPLACE, pe)
#define shmem_atomic_set(...) SHMEM_3(SHMEM_SET, __VA_ARGS__)
#define SHMEM_SWAP(object, value, pe) SHMEM_FETCHING(object, value, MPI_REPLACE, pe)
#define shmem_atomic_swap(...) SHMEM_3(SHMEM_SWAP, __VA_ARGS__)
#define SHMEM_SWAP_NBI(before, object, value, pe) (*(before) = SHMEM_SWAP(object, value, pe))
#define shmem_atomic_swap_nbi(...) SHMEM_4(SHMEM_SWAP_NBI, __VA_ARGS__)
#define SHMEM_ADD(object, value, pe) SHMEM_ATOMIC(object, value, MPI_SUM, pe)
#define shmem_atomic_add(...) SHMEM_3(SHMEM_ADD, __VA_ARGS__)
#define SHMEM_FETCH_ADD(object, value, pe) SHMEM_FETCHING(object, value, MPI_SUM, pe)
#define shmem_atomic_fetch_add(...) SHMEM_3(SHMEM_FETCH_ADD, __VA_ARGS__)
#define SHMEM_FETCH_ADD_NBI(before, object, value, pe) (*(before) = SHMEM_FETCH_ADD(object, value, pe))
#define shmem_atomic_fetch_add_nbi(...) SHMEM_4(SHMEM_FETCH_ADD_NBI, __VA_ARGS__)
#define SHMEM_AND(object, value, pe) SHMEM_ATOMIC(object, value, MPI_BAND, pe)
#define shmem_atomic_and(...) SHMEM_3(SHMEM_AND, __VA_ARGS__)
#define SHMEM_FETCH_AND(object, value, pe) SHMEM_FETCHING(object, value, MPI_BAND, pe)
#define shmem_atomic_fetch_and(...) SHMEM_3(SHMEM_FETCH_AND, __VA_ARGS__)
#define SHMEM_FETCH_AND_NBI(before, object, value, pe) (*(before) = SHMEM_FETCH_AND(object, value, pe))
#define shmem_atomic_fetch_and_nbi(...) SHMEM_4(SHMEM_FETCH_AND_NBI, __VA_ARGS__)
#define SHMEM_OR(object, value, pe) SHMEM_ATOMIC(object, value, MPI_BOR, pe)
#define shmem_atomic_or(...) SHMEM_3(SHMEM_OR, __VA_ARGS__)
#define SHMEM_FETCH_OR(object, value, pe) SHMEM_FETCHING(object, value, MPI_BOR, pe)
#define shmem_atomic_fetch_or(...) SHMEM_3(SHMEM_FETCH_OR, __VA_ARGS__)
#define SHMEM_FETCH_OR_NBI(before, object, value, pe) (*(before) = SHMEM_FETCH_OR(object, value, pe))
#define shmem_atomic_fetch_or_nbi(...) SHMEM_4(SHMEM_FETCH_OR_NBI, __VA_ARGS__)
#define SHMEM_XOR(object, value, pe) SHMEM_ATOMIC(object, value, MPI_BXOR, pe)
#define shmem_atomic_xor(...) SHMEM_3(SHMEM_XOR, __VA_ARGS__)
#define SHMEM_FETCH_XOR(object, value, pe) SHMEM_FETCHING(object, value, MPI_BXOR, pe)
#define shmem_atomic_fetch_xor(...) SHMEM_3(SHMEM_FETCH_XOR, __VA_ARGS__)
#define SHMEM_FETCH_XOR_NBI(before, object, value, pe) (*(before) = SHMEM_FETCH_XOR(object, value, pe))
#define shmem_atomic_fetch_xor_nbi(...) SHMEM_4(SHMEM_FETCH_XOR_NBI, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) SHMEM_4(SHMEM_CSWAP, __VA_ARGS__)
#define SHMEM_CSWAP_NBI(before, object, compare, value, pe) (*(before) = SHMEM_CSWAP(object, compare, value, pe))
#define shmem_atomic_compare_swap_nbi(...) SHMEM_5(SHMEM_CSWAP_NBI, __VA_ARGS__)

#endif
