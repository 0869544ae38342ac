#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what is missing, builds, and runs the tests: all rings, or those that are named.
# The last line is "N passed, N failed[, N skipped]"; the status is 0 only when nothing failed.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/lib.sh

usage()
{
	cat <<-END
	usage: ./test.sh [RING]... | --list
	Installs what is missing (config/packages.txt), builds in build/, and runs the rings of
	tests, all when none is named. The rings are listed in tests/run, or by ./test.sh --list.
	END
}

case "${1-}" in
-h | --help)
	usage
	exit 0
	;;
--list)
	exec tests/run --list
	;;
esac

# What ends before the tests are counted is one failure.
trap 'echo "0 passed, 1 failed"' EXIT
need build test
build build || die "the build failed"
trap - EXIT
exec /usr/bin/python3 tests/run "$@"
