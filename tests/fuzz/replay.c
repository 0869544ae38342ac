/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over the files of a corpus directory, with any compiler and no fuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

#define INPUT_MAX (1u << 20)

static int
replay(const char *dir, const char *name, uint8_t *input)
{
	char path[4096];
	FILE *f;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -1;
	f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		return -1;
	}
	n = fread(input, 1, INPUT_MAX, f);
	fclose(f);
	LLVMFuzzerTestOneInput(input, n);
	return 0;
}

int
main(int argc, char **argv)
{
	uint8_t *input = malloc(INPUT_MAX);
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *e;
	unsigned int done = 0, failed = 0;

	if (dir == NULL || input == NULL) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	LLVMFuzzerInitialize(&argc, &argv);
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		failed += replay(argv[1], e->d_name, input) != 0;
		done++;
	}
	closedir(dir);
	free(input);
	printf("%u inputs\n", done);
	return done == 0 || failed != 0;
}
