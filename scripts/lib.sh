# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What run.sh and test.sh share. Sourced with the top of the tree as the current directory.

PACKAGES=config/packages.txt

say()
{
	printf '%s\n' "== $*" >&2
}

die()
{
	printf '%s\n' "$0: $*" >&2
	exit 1
}

# packages SECTION...: the packages of these sections.
packages()
{
	awk -v want=" $* " '
		/^\[/ { section = substr($0, 2, length($0) - 2); next }
		/^[a-z]/ && index(want, " " section " ") { print $1 }' "$PACKAGES"
}

# missing PACKAGE...: those that are not installed.
missing()
{
	local p

	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed ||
			echo "$p"
	done
}

# need SECTION...: installs what is missing; nothing is asked of the network when nothing is.
need()
{
	local all lacking as_root=()

	mapfile -t all < <(packages "$@")
	((${#all[@]})) || die "no package of section $* in $PACKAGES"
	if ! command -v dpkg-query >/dev/null; then
		say "not a Debian system: not installing ${all[*]}"
		return 0
	fi
	mapfile -t lacking < <(missing "${all[@]}")
	((${#lacking[@]})) || return 0
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
			die "packages are missing; as root: apt-get install ${lacking[*]}"
		fi
		as_root=(sudo)
	fi
	say "installing ${lacking[*]}"
	"${as_root[@]}" apt-get update -qq >&2 || say "apt-get update failed: trying without"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "${lacking[@]}" >&2 ||
		die "installing failed: ${lacking[*]}"
}

# build DIRECTORY [TARGET]...: configures when needed, and builds, all when no target is named.
# Fails when the build fails.
build()
{
	local dir=$1 log

	shift
	say "building in $dir"
	if [ ! -f "$dir/build.ninja" ]; then
		log=$(meson setup "$dir" 2>&1) || {
			printf '%s\n' "$log" >&2
			return 1
		}
	fi
	ninja -C "$dir" --quiet "$@" >&2
}
