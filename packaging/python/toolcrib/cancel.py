"""Cancellation of requests from another thread."""

import threading
from collections.abc import Callable


class Cancel:
    """Cancels the requests that it was given to. One object can be given to many requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._actions: dict[int, Callable[[], object]] = {}
        self._next = 0

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancels all running requests with this object, and those that are made later."""
        with self._lock:
            self._cancelled = True
            actions, self._actions = self._actions, {}
        for action in actions.values():
            action()

    def attach(self, action: Callable[[], object]) -> Callable[[], None]:
        """Calls `action` at the cancellation, at once if it has happened. Returns a function that detaches it."""
        with self._lock:
            key, self._next = self._next, self._next + 1
            if not self._cancelled:
                self._actions[key] = action
        if self._cancelled:
            action()
        return lambda: self._actions.pop(key, None) and None
