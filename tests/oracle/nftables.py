# SPDX-License-Identifier: BSD-3-Clause
"""nft without a process for each file: its library, in the network namespace that the thread is in
when a context is made."""

import ctypes

LIBRARY = 'libnftables.so.1'


class Nft:
    def __init__(self):
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.nft_ctx_new.restype = ctypes.c_void_p
        self.lib.nft_ctx_get_error_buffer.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.lib.nft_ctx_new(0))
        if not self.context or self.lib.nft_ctx_buffer_error(self.context):
            raise OSError(f'{LIBRARY}: no context')

    def run(self, text):
        """Applies a file, as nft -f does."""
        if self.lib.nft_run_cmd_from_buffer(self.context, text.encode()):
            error = self.lib.nft_ctx_get_error_buffer(self.context)
            raise RuntimeError(f'nft: {error.decode()}')

    def close(self):
        self.lib.nft_ctx_free(self.context)
