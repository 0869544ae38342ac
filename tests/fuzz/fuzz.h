/* SPDX-License-Identifier: BSD-3-Clause */
/* What libFuzzer, or replay.c in its place, calls of a target. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
