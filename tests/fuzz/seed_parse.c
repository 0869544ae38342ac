/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the unit tests' frames, a file each, as the corpus that fuzz_parse starts from. */
#include <stdio.h>

#include "frames.h"

int
main(int argc, char **argv)
{
	unsigned int i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (i = 0; i < frame_cases_n; i++) {
		static struct frame frame;
		char path[4096];
		FILE *f;

		frame_cases[i].build(&frame);
		snprintf(path, sizeof(path), "%s/%s", argv[1], frame_cases[i].name);
		f = fopen(path, "wb");
		if (f == NULL || fwrite(frame.b, 1, frame.len, f) != frame.len || fclose(f) != 0) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
