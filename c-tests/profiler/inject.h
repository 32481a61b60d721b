// What inject.c gives a program.

#ifndef INJECT_H
#define INJECT_H

// From now on the k-th call of this function by libfompi.so fails with this errno, once.
void inject_arm(const char *function, long k, int error);

// No call fails any more. Returns how many did.
long inject_disarm(void);

#endif
