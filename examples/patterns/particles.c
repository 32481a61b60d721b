/* Particles in cell: those that leave the domain go to the neighbour, who appends them. Which ones
 * leave changes with each step, so the datatype of the origin is built in each step. */
#include "lists.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    double position[3], velocity[3], weight;
    int cell, tag;
} Particle;

static int emigrants(const Domain *d) { return d->n * d->n / 2; }
static int residents(const Domain *d) { return 4 * emigrants(d); }

static size_t particles_bytes(const Domain *d) {
    return sizeof(Particle) * (residents(d) + emigrants(d));
}

static void particles_prepare(Domain *d) {
    d->leaving[0] = malloc(sizeof(int) * emigrants(d));
    ascending(d->leaving[0], emigrants(d), d->rank + 1);
    exchange_lists(d, emigrants(d), 0);
}

/* A struct of its members, resized to what the compiler makes of it: a count of more than one, and
 * an index, step over particles as C does. */
static MPI_Datatype particle_type(void) {
    int lengths[] = {7, 2};
    MPI_Aint displacements[] = {offsetof(Particle, position), offsetof(Particle, cell)};
    MPI_Datatype members[] = {MPI_DOUBLE, MPI_INT}, inner, particle;
    MPI_Type_create_struct(2, lengths, displacements, members, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(Particle), &particle);
    MPI_Type_free(&inner);
    return particle;
}

static Place particles_leaving(const Domain *d, int source, int target) {
    MPI_Datatype particle = particle_type(), chosen;
    (void)target;
    MPI_Type_create_indexed_block(emigrants(d), 1, leaving_list(d, source), particle, &chosen);
    return (Place){0, 1, finished(chosen, 1, &particle)};
}

static Place particles_arriving(const Domain *d, int source, int target) {
    (void)source, (void)target;
    return (Place){sizeof(Particle) * residents(d), emigrants(d),
                   finished(particle_type(), 0, NULL)};
}

static void particles_pack(const Domain *d, int source, int target, const char *arrays,
                           char *buffer) {
    const Particle *from = (const Particle *)arrays;
    Particle *to = (Particle *)buffer;
    const int *list = leaving_list(d, source);
    (void)target;
    for (int i = 0, count = emigrants(d); i < count; i++) to[i] = from[list[i]];
}

static void particles_unpack(const Domain *d, int source, int target, char *arrays,
                             const char *buffer) {
    (void)source, (void)target;
    memcpy((Particle *)arrays + residents(d), buffer, sizeof(Particle) * emigrants(d));
}

const Pattern particles = {
    .name = "particles", .field = "plasma physics", .code = "particle in cell",
    .kind = 0, .is_new = 1,
    .bytes = particles_bytes, .prepare = particles_prepare, .leaving = particles_leaving,
    .arriving = particles_arriving, .pack = particles_pack, .unpack = particles_unpack,
};
