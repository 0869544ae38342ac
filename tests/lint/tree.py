# SPDX-License-Identifier: BSD-3-Clause
"""The files of the tree: what git tracks or would track, or all below the top without git."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ('.pcap', '.pcapng', '.png', '.bin', '.gz')


def paths():
    if (ROOT / '.git').exists():
        command = ['git', '-c', f'safe.directory={ROOT}', 'ls-files', '-z', '--cached', '--others',
                   '--exclude-standard']
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:
            return sorted(p for p in listed.stdout.split('\0') if p and (ROOT / p).is_file())
    found = []
    for directory, subdirs, names in os.walk(ROOT):
        here = pathlib.Path(directory).relative_to(ROOT)
        subdirs[:] = [d for d in subdirs if d not in ('.git', '__pycache__')
                      and not (here == pathlib.Path('.') and d.startswith('build'))]
        found += [str(here / n) for n in names]
    return sorted(found)


def is_text(path):
    return not path.endswith(BINARY) and '/corpus/' not in path


def texts():
    """{path: text} of all text files of the tree."""
    return {p: (ROOT / p).read_text(errors='replace') for p in paths() if is_text(p)}
