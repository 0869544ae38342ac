#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what is missing, builds, and shows the gateway at work on config/demo.conf.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/lib.sh

CONFIG=config/demo.conf
seconds=20
huge_pages_wanted=512 # of 2 MB: what the demo's packet buffers and tables take, with room

usage()
{
	cat <<-END
	usage: ./run.sh [--seconds N]
	Installs what is missing (config/packages.txt), builds in build/, and runs $CONFIG for
	N seconds ($seconds when not given, 0: until Ctrl-C). Needs neither root nor huge pages.
	END
}

while [ $# -gt 0 ]; do
	case "$1" in
	--seconds)
		[[ "${2-}" =~ ^[0-9]{1,6}$ ]] || { usage >&2; exit 2; }
		seconds=$2
		shift 2
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done

need build
build build || die "the build failed"
sluice=build/app/sluice
sluicectl=build/app/sluicectl
[ -d "$sluicectl" ] && sluicectl=$sluicectl/sluicectl

dir=$(mktemp -d "${TMPDIR:-/tmp}/sluice-demo.XXXXXX")
socket=$dir/socket
daemon=
stop=

cleanup()
{
	trap - EXIT
	if [ -n "$daemon" ] && kill -TERM "$daemon" 2>/dev/null; then
		wait "$daemon" || true
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'stop=1' INT TERM

ctl()
{
	"$sluicectl" -s "$socket" "$@"
}

# Whether there are enough free huge pages, and a hugetlbfs that this user may write to.
huge_pages()
{
	local free mount

	free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
	mount=$(awk '$3 == "hugetlbfs" { print $2; exit }' /proc/mounts)
	[ "${free:-0}" -ge "$huge_pages_wanted" ] && [ -n "$mount" ] && [ -w "$mount" ]
}

pages=()
huge_pages || pages=(--no-huge)
# A session of its own: Ctrl-C is for this script, which asks the daemon for its last numbers first.
setsid "$sluice" -c "$CONFIG" -s "$socket" "${pages[@]}" >"$dir/log" 2>&1 &
daemon=$!

for ((i = 0; ; i++)); do
	ctl show version >/dev/null 2>&1 && break
	if ! kill -0 "$daemon" 2>/dev/null || [ $i -ge 300 ]; then
		cat "$dir/log" >&2
		die "the gateway did not start"
	fi
	sleep 0.1
done

say "$CONFIG is running, on ${pages[0]:+normal}${pages[0]-huge} pages; its socket is $socket"
end=$((SECONDS + seconds))
while [ -z "$stop" ] && { [ "$seconds" -eq 0 ] || [ $SECONDS -lt $end ]; }; do
	kill -0 "$daemon" 2>/dev/null || { cat "$dir/log" >&2; die "the gateway ended"; }
	ctl top
	sleep 1
done

say "summary"
ctl stats
ctl drops
ctl show workers
cat <<END

Next: leave it running with ./run.sh --seconds 0, and in another terminal look into a tenant:
  $sluicectl -s $socket conntrack list netns t1
(the socket's name is printed at the start). $sluicectl without a command is a shell with
completion; README.md builds a first gateway of your own in five minutes.
END
