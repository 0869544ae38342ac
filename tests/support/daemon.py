# SPDX-License-Identifier: BSD-3-Clause
"""A sluice daemon of a test: started with a config text, spoken to by sluicectl, ended by pid."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import time


def program(build_dir, name):
    """Path of a built program; the test cannot go on without it."""
    for path in (build_dir / 'app' / name, build_dir / 'app' / name / name):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f'{name} is not built in {build_dir}: run ./test.sh or ninja')


def wait_for(what, condition, seconds=10.0, pause=0.02):
    """The first true value of condition(); fails with `what` when there is none in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'{what}: not within {seconds:g} s')
        time.sleep(pause)


class Refused(Exception):
    """sluicectl ended with a status other than 0; the text is what it wrote on stderr."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Daemon:
    """no_huge: ask for normal pages, which every machine has. wrapper: words in front of the
    command, such as ['ip', 'netns', 'exec', NAME]."""

    def __init__(self, build_dir, directory, config='', *args, no_huge=True, wrapper=(), env=None):
        self.sluice = program(build_dir, 'sluice')
        self.sluicectl = program(build_dir, 'sluicectl')
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config = self.directory / 'sluice.conf'
        self.config.write_text(config)
        # A socket's path has at most 107 bytes, which pytest's directories may exceed.
        self.run_dir = tempfile.TemporaryDirectory(prefix='sluice-')
        self.socket = pathlib.Path(self.run_dir.name) / 's'
        self.log = self.directory / 'log'
        self.args = list(args) + (['--no-huge'] if no_huge else [])
        self.wrapper = list(wrapper)
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def command(self):
        return [*self.wrapper, str(self.sluice), '-c', str(self.config), '-s', str(self.socket),
                *self.args]

    def start(self, seconds=30.0):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env)

        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f'{shlex.join(self.command())} ended with status '
                                     f'{self.process.returncode}:\n{self.log_text()}')
            return self.socket.exists() and self.run('show', 'version').returncode == 0

        wait_for(f'answer of the daemon; its log:\n{self.log_text()}', answers, seconds)

    def log_text(self):
        return self.log.read_text(errors='replace') if self.log.exists() else ''

    def run(self, *words, options=(), timeout=30.0):
        """sluicectl with these words; the completed process, whatever its status."""
        return subprocess.run([str(self.sluicectl), '-s', str(self.socket), *options,
                               *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, env=self.env)

    def ctl(self, line, **kwargs):
        """Output of one command, given as a line; Refused when its status is not 0."""
        done = self.run(*shlex.split(line), **kwargs)
        if done.returncode != 0:
            raise Refused(done.returncode, done.stderr.strip())
        return done.stdout

    def json(self, line, **kwargs):
        """The same with -j: the answer, or a list where it is one object a line."""
        text = self.ctl(line, options=('-j',), **kwargs)
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return [json.loads(row) for row in text.splitlines() if row.strip()]

    def stop(self, sig=signal.SIGTERM, seconds=15.0):
        """Ends it by its own pid; the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.run_dir.cleanup()
        return self.process.returncode
