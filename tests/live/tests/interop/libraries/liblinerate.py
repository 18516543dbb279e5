"""Server and client of liblinerate.so in one process, by ctypes. Prints what both ends saw as a JSON object.

liblinerate.py LIBRARY PORT
"""

import ctypes
import json
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
EVENT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
library.linerate_new.restype = ctypes.c_void_p
library.linerate_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
library.linerate_on_event.argtypes = [ctypes.c_void_p, EVENT, ctypes.c_void_p]
for name in "free run stop error_number".split():
    getattr(library, f"linerate_{name}").argtypes = [ctypes.c_void_p]
for name in "result error".split():
    getattr(library, f"linerate_{name}").argtypes = [ctypes.c_void_p]
    getattr(library, f"linerate_{name}").restype = ctypes.c_char_p


class Test:
    def __init__(self, **options):
        self.events = []
        self.is_listening = threading.Event()
        self.test = library.linerate_new()
        # The function must live as long as the test may call it.
        self.function = EVENT(self.on_event)
        library.linerate_on_event(self.test, self.function, None)
        for option, value in options.items():
            value = None if value is None else str(value).encode()
            assert library.linerate_set(self.test, option.replace("_", "-").encode(), value) == 0

    def on_event(self, text, _user):
        event = json.loads(text)
        self.events.append(event["event"])
        if event["event"] == "listening":
            self.is_listening.set()

    def run(self):
        result = library.linerate_run(self.test)
        report = library.linerate_result(self.test)
        error = library.linerate_error(self.test)
        return {
            "result": result,
            "error": error and error.decode(),
            "number": library.linerate_error_number(self.test),
            "report": report and json.loads(report),
            "events": self.events,
        }


port = sys.argv[2]
server = Test(server=None, bind="127.0.0.1", port=port)
served = {}
thread = threading.Thread(target=lambda: served.update(server.run()))
thread.start()
assert server.is_listening.wait(10)
client = Test(client="127.0.0.1", port=port, udp=None, bitrate="5M", length=1000, time=1)
sent = client.run()
library.linerate_stop(server.test)
thread.join()
library.linerate_free(client.test)
library.linerate_free(server.test)
print(json.dumps({"client": sent, "server": served}))
