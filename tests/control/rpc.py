# SPDX-License-Identifier: BSD-3-Clause
"""A raw client of the control socket: it sends what the test likes, and must read JSON."""

import json
import socket


class Rpc:
    def __init__(self, path, timeout=20):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(str(path))
        self.buffer, self.start = b'', 0
        self.last_id = 0

    def send(self, data):
        self.sock.sendall(data)

    def raw_line(self):
        """The next line; None at the end of the stream."""
        end = self.buffer.find(b'\n', self.start)
        while end < 0:
            data = self.sock.recv(1 << 18)
            if not data:
                assert len(self.buffer) == self.start, 'half a line at the end of the stream'
                return None
            self.buffer = self.buffer[self.start:] + data
            self.start = 0
            end = self.buffer.find(b'\n')
        line = self.buffer[self.start:end]
        self.start = end + 1
        return line

    def line(self):
        """The next line as JSON; None at the end of the stream."""
        line = self.raw_line()
        if line is None:
            return None
        message = json.loads(line)
        for one in message if isinstance(message, list) else [message]:
            assert one['jsonrpc'] == '2.0'
        return message

    def request(self, method, params=None, request_id=None):
        self.last_id += 1
        request = {'jsonrpc': '2.0', 'id': request_id or self.last_id, 'method': method}
        if params is not None:
            request['params'] = params
        return request

    def answer(self, request_id):
        """(items, answer) of a request."""
        items = []
        while True:
            message = self.line()
            assert message is not None, 'closed before the answer'
            if message.get('method') != 'item':
                assert message['id'] == request_id
                return items, message
            assert message['params'].pop('id') == request_id
            items.append(message['params'])

    def call(self, method, **params):
        """The answer, which may be an error."""
        request = self.request(method, params)
        self.send(json.dumps(request).encode() + b'\n')
        return self.answer(request['id'])[1]

    def ok(self, method, **params):
        answer = self.call(method, **params)
        assert 'error' not in answer, answer
        return answer['result']

    def error(self, method, **params):
        answer = self.call(method, **params)
        assert 'result' not in answer, answer
        return answer['error']

    def items(self, method, **params):
        request = self.request(method, params)
        self.send(json.dumps(request).encode() + b'\n')
        items, answer = self.answer(request['id'])
        assert answer['result']['count'] == len(items)
        return items

    def batch(self, *requests):
        """(method, params) each; the answers in order."""
        lines = [self.request(method, params) for method, params in requests]
        self.send(json.dumps(lines).encode() + b'\n')
        answers = self.line()
        assert [a['id'] for a in answers] == [r['id'] for r in lines]
        return answers

    def names(self):
        return {n['name'] for n in self.items('netns.list')}

    def is_closed(self):
        """Nothing more comes; what the daemon had not read when it closed makes that a reset."""
        try:
            return self.line() is None
        except ConnectionResetError:
            return True

    def close(self):
        self.sock.close()
