#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds, and runs the benchmarks of the conntrack table, of the packet path, of limits, of
# namespaces, and of what one tenant feels of another and of its millions of connections.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh

usage()
{
	cat <<-END
	usage: tests/bench/run.sh [--quick] [--hugepages] [--json DIR] [table] [path]
	                          [nat] [connlimit] [netns] [isolation] [ehash]
	Builds in build/ and runs the named benchmarks, all when none is named. The machine should
	have nothing else to do. About twelve minutes; with --quick a minute.
	  --quick      small sizes and short rounds: shows that all works, not how fast it is
	  --hugepages  as root: reserves huge pages of 2 MB for the packet buffers while it runs
	  --json DIR   writes DIR/table.json and so on instead of printing tables
	More options has the --help of build/tests/bench/bench_table and so on. As root, netns
	measures namespaces of the kernel too.
	END
}

quick=()
json=
hugepages=
which=()
while [ $# -gt 0 ]; do
	case "$1" in
	--quick) quick=(--quick) ;;
	--hugepages) hugepages=1 ;;
	--json)
		[ $# -ge 2 ] || { usage >&2; exit 2; }
		json=$2
		shift
		;;
	table | path | nat | connlimit | netns | isolation | ehash) which+=("$1") ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done
((${#which[@]})) || which=(table path nat connlimit netns isolation ehash)

NR=/proc/sys/vm/nr_hugepages
before=

# Beside those that others use, 1.6 GB: the capture of a million flows in both directions.
reserve()
{
	[ -w "$NR" ] || die "--hugepages must be root to write $NR"
	before=$(<"$NR")
	trap 'echo "$before" >"$NR"' EXIT
	echo $((before + 800)) >"$NR"
	[ "$(<"$NR")" -eq $((before + 800)) ] ||
		say "the machine has only $(<"$NR") huge pages to give: some runs are without"
}

build=${SLUICE_BUILD:-build}
need build
build "$build" || die "the build failed"
[ -z "$json" ] || mkdir -p "$json"
[ -z "$hugepages" ] || reserve
for name in "${which[@]}"; do
	options=("${quick[@]}")
	[ "$name" != netns ] || [ "$(id -u)" -ne 0 ] || options+=(--kernel)
	if [ -n "$json" ]; then
		"$build/tests/bench/bench_$name" "${options[@]}" --json >"$json/$name.json"
	else
		"$build/tests/bench/bench_$name" "${options[@]}"
	fi
done
