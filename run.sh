#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what is missing, builds, and shows the gateway at work on config/demo.conf.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/lib.sh

CONFIG=config/demo.conf
seconds=20

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

build=${SLUICE_BUILD:-build}
need build
build "$build" app/sluice app/sluicectl || die "the build failed"
sluice=$build/app/sluice
sluicectl=$build/app/sluicectl

dir=$(mktemp -d "${TMPDIR:-/tmp}/sluice-demo.XXXXXX")
socket=$dir/socket
daemon=
view=
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
trap 'stop=1; kill "$view" 2>/dev/null || true' INT TERM

ctl()
{
	"$sluicectl" -s "$socket" "$@"
}

# In a session of its own: Ctrl-C is for the script, which asks the daemon for its last numbers
# before it ends it.
setsid "$sluice" -c "$CONFIG" -s "$socket" >"$dir/log" 2>&1 &
daemon=$!

for ((i = 0; ; i++)); do
	ctl show version >/dev/null 2>&1 && break
	if ! kill -0 "$daemon" 2>/dev/null || [ $i -ge 300 ]; then
		cat "$dir/log" >&2
		die "the gateway did not start"
	fi
	sleep 0.1
done

say "$CONFIG is running; its socket is $socket"
rounds=()
[ "$seconds" -eq 0 ] || rounds=(count "$seconds")
if [ -t 0 ] && [ -t 1 ]; then
	# A screen, which q or Ctrl-C leaves.
	ctl top interval 1 "${rounds[@]}" || stop=failed
else
	ctl top interval 1 "${rounds[@]}" &
	view=$!
	wait "$view" || stop=${stop:-failed}
fi
if [ "$stop" = failed ]; then
	cat "$dir/log" >&2
	die "the gateway ended"
fi

say "workers, tracking, and all drops"
ctl show workers
ctl stats
ctl drops
say "t8, which is under the flood, and t7 beside it: entries, packets, drops"
for tenant in t8 t7; do
	ctl stats netns $tenant
	ctl drops netns $tenant
done
cat <<END

Next: leave it running with ./run.sh --seconds 0, and in another terminal look into a tenant:
  $sluicectl -s SOCKET conntrack list netns t1
where SOCKET is the socket that it names at its start. Without a command $sluicectl is a shell
with completion; README.md builds a first gateway of your own in five minutes.
END
