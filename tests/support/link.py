"""A link between agent and hub that can be slow, mute or cut: a proxy that forwards bytes late, or not."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time


class Link:
    """Forwards TCP to a port of this machine.

    Args:
        port: the hub's.

    Attributes:
        delay_s: how late bytes arrive, each way.
        mute: bytes vanish, and nobody is told; as with a cable pulled out.
        carried: bytes that passed.
    """

    def __init__(self, port: int) -> None:
        self.delay_s, self.mute, self.carried = 0.0, False, 0
        self._target, self._open = port, True
        self._pairs: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and let none through until `mend`."""
        self._open = False
        self._break()

    def mend(self) -> None:
        """Let connections through again."""
        self.mute, self._open = False, True

    def close(self) -> None:
        """Gone for good."""
        self.cut()
        self._door.close()

    def _break(self) -> None:
        pairs, self._pairs = self._pairs, []
        for end in pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            if not self._open:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._target))
            self._pairs += [near, far]
            for one, other in ((near, far), (far, near)):
                self._carry(one, other)

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        late: queue.Queue[tuple[float, bytes]] = queue.Queue()

        def take() -> None:
            data = b"x"
            while data:
                try:
                    data = one.recv(65536)
                except OSError:
                    data = b""
                if not self.mute:
                    late.put((time.monotonic() + self.delay_s, data))

        def give() -> None:
            while True:
                due_s, data = late.get()
                if (left_s := due_s - time.monotonic()) > 0:
                    time.sleep(left_s)
                self.carried += len(data)
                try:
                    if not data:
                        other.shutdown(socket.SHUT_WR)
                        return
                    other.sendall(data)
                except OSError:
                    return

        for work in (take, give):
            threading.Thread(target=work, daemon=True).start()
