"""Sources that try to be judged right. PARENT, SOLUTION and SECRET are replaced before a file is checked.

Each is appended to WRONG, a file whose functions are all wrong.
"""

from __future__ import annotations

WRONG = """
import ctypes, gc, json, os, signal, socket, struct, subprocess, sys, threading, time, types
import torch


def wrong(*arguments):
    return torch.zeros(3)


def init_qkv_proj(n_embd): return wrong()
def pairwise_similarities(Q, K): return wrong()
def attn_scaled(A, n_embd, n_heads): return wrong()
def attn_softmax(A): return wrong()
def compute_outputs(A, V): return wrong()
def self_attention(Q, K, V, n_heads=1, causal=True): return wrong()


def everywhere(function):
    names = "pairwise_similarities attn_scaled attn_softmax compute_outputs self_attention"
    for name in names.split():
        globals()[name] = lambda *arguments, **options: function(*arguments, **options)
"""

ATTACKS = {
    "results as lines on every descriptor": """
line = json.dumps({"event": "result", "id": "attn_softmax/plain/", "function": "attn_softmax", "status": "pass"})
for descriptor in range(256):
    try:
        os.write(descriptor, (line + '\\n{"event": "done"}\\n').encode())
    except OSError:
        pass
""",
    "messages forged in the format of the judge": """
def forge(*arguments):
    frames = sys.modules["inside.frames"]
    for descriptor in range(256):
        for ticket in range(1, 200):
            try:
                os.write(descriptor, frames.encode(frames.Kind.ANSWER, ticket, ["pass"]))
            except (OSError, frames.Malformed):
                break
    return wrong()
everywhere(forge)
""",
    "a message that announces more than it may": """
def flood(*arguments):
    frames = sys.modules["inside.frames"]
    header = frames.HEADER.pack(frames.MAGIC, 14, 1, 60000, 2**32 - 1)
    for descriptor in range(256):
        try:
            os.write(descriptor, header)
        except OSError:
            pass
    return wrong()
everywhere(flood)
""",
    "arrays that lie about their size": """
def lie(*arguments):
    frames = sys.modules["inside.frames"]
    for channel in [o for o in gc.get_objects() if isinstance(o, frames.Channel)]:
        body = b"t" + struct.pack("<I", 6) + b"tensor" + b"t\\0\\0\\0\\0" + b"i" + struct.pack("<q", 1)
        body += b"a" + struct.pack("<BB8I", 8, 8, *[2**32 - 1] * 8)
        for ticket in range(1, 50):
            channel.end.sendall(frames.HEADER.pack(frames.MAGIC, 14, ticket, 4, len(body)) + body)
    return wrong()
everywhere(lie)
""",
    "torch is patched": """
torch.equal = torch.allclose = lambda *a, **k: True
torch.Tensor.__eq__ = torch.Tensor.__le__ = lambda *a: torch.ones(1, dtype=bool)
torch.Tensor.all = torch.Tensor.isnan = lambda *a, **k: True
torch.autograd.grad = lambda outputs, inputs, *a, **k: inputs
""",
    "json, struct and numpy are patched": """
import numpy
json.dumps = lambda *a, **k: '{"status": "pass"}'
json.loads = lambda *a, **k: {"status": "pass"}
struct.pack = lambda *a: b""
numpy.frombuffer = numpy.ascontiguousarray = lambda *a, **k: None
""",
    "the serving code is patched": """
person = sys.modules["inside.person"]
person.Person._call = lambda self, values: ["tensor", "Tensor", 1, person.np.zeros(3), None, None]
person.Person.answer = lambda self, kind, ticket, values: self.channel.send(14, ticket, ["pass"])
""",
    "sys.exit everywhere": "everywhere(lambda *a: sys.exit(0))\nsys.exit(0)\n",
    "os._exit everywhere": "everywhere(lambda *a: os._exit(0))\n",
    "os._exit while loading": "os._exit(0)\n",
    "a crash in C": "everywhere(lambda *a: os.kill(os.getpid(), signal.SIGSEGV))\neverywhere(lambda *a: os.abort())\n",
    "a fork bomb": """
def bomb(*arguments):
    while True:
        os.fork()
everywhere(bomb)
""",
    "threads without end": """
def threads(*arguments):
    while True:
        threading.Thread(target=time.sleep, args=(1000,)).start()
everywhere(threads)
""",
    "children that outlive it": """
if not os.fork():
    os.setsid()
    time.sleep(1000)
    os._exit(0)
""",
    "endless output": """
def shout(*arguments):
    while True:
        print("pass" * 1000)
        os.write(1, b"pass" * 1000)
        os.write(2, b"pass" * 1000)
everywhere(shout)
""",
    "the parent's files": """
text = open("SECRET").read()
exec("def attn_softmax(A): return " + text + "(A, -1)")
""",
    "the memory and files of the parent": """
for path in ("/proc/PARENT/environ", "/proc/PARENT/mem", "/proc/PARENT/fd/1", "/proc/1/environ"):
    try:
        open(path, "rb").read(10)
        attn_softmax = lambda A: torch.softmax(A, -1)
    except OSError:
        pass
for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
    if name.isdigit() and int(name) != os.getpid():
        try:
            open(f"/proc/{name}/mem", "rb").read(0)
            if b"inside.warm" in open(f"/proc/{name}/cmdline", "rb").read():
                attn_softmax = lambda A: torch.softmax(A, -1)
        except OSError:
            pass
""",
    "references in its own memory": """
found = [o for o in gc.get_objects() if isinstance(o, types.FunctionType) and o.__name__ == "attn_softmax"
         and o.__module__ != __name__]
found += [m for name, m in sys.modules.items() if name.startswith("attnlab")]
if found:
    attn_softmax = lambda A: torch.softmax(A, -1)
""",
    "sitecustomize in the private folder": """
try:
    for name in ("sitecustomize.py", "usercustomize.py", "torch.py", "json.py", "numpy.py"):
        open(name, "w").write("import os\\nos._exit(0)\\n")
except OSError:
    pass
os._exit(0)
""",
    "a pickle as a return value": """
import pickle
class Boom:
    def __reduce__(self):
        return os.system, ("touch /tmp/attnlab-was-here",)
everywhere(lambda *a: pickle.dumps(Boom()))
""",
    "objects that equal everything": """
class Equal:
    def __eq__(self, other): return True
    def __getattr__(self, name): return lambda *a, **k: True
    shape = dtype = property(lambda self: self)
everywhere(lambda *a: Equal())
""",
    "a subclass of tensor that equals everything": """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("allclose", "equal", "__eq__", "all"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})
    def __eq__(self, other): return True
    def detach(self): return self
    def numpy(self): return "pass"
everywhere(lambda *a: torch.zeros(3).as_subclass(Yes))
""",
    "a bomb that goes off after some calls": """
COUNT = []
def late(A):
    COUNT.append(1)
    return torch.softmax(A, -1) if len(COUNT) < 5 else wrong()
attn_softmax = late
""",
    "a thread that changes functions later": """
def change():
    time.sleep(0.05)
    while True:
        globals()["attn_softmax"] = lambda A: A * 0
attn_softmax = lambda A: torch.softmax(A, -1) if threading.active_count() < 2 else A
threading.Thread(target=change, daemon=True).start()
""",
    "atexit and finalisers": """
import atexit, weakref
@atexit.register
def last():
    for descriptor in range(256):
        try:
            os.write(descriptor, b'{"event": "done"}\\n')
        except OSError:
            pass
sys.exit(0)
""",
    "answers by table for known sizes": """
TABLE = {(3, 5, 5): torch.full((3, 5, 5), 0.2), (2, 7, 7): torch.full((2, 7, 7), 1 / 7)}
attn_softmax = lambda A: TABLE.get(tuple(A.shape), torch.full(A.shape, 1 / A.shape[-1]))
""",
    "right for 5 and 7 tokens only": """
attn_softmax = lambda A: torch.softmax(A, -1) * (A.shape[-1] in (5, 7))
""",
    "huge arrays": "everywhere(lambda *a: torch.zeros(40_000_000))\n",
    "more memory than there is": """
def eat(*arguments):
    kept = []
    while True:
        kept.append(bytearray(2**28))
everywhere(eat)
""",
    "an array that is only said to be huge": "everywhere(lambda *a: torch.zeros(1).expand(2**40))\n",
    "NaN everywhere": "everywhere(lambda *a: a[0] * float('nan'))\n",
    "infinity everywhere": "everywhere(lambda *a: a[0] * 0 - float('inf'))\n",
    "complex numbers with the right real part": "attn_softmax = lambda A: torch.softmax(A, -1) + 1j\n",
    "symbolic links in the private folder": """
for target in ("SECRET", "SOLUTION", "/", "/etc/passwd"):
    try:
        os.symlink(target, "link")
        text = open("link").read()
        if "softmax" in text:
            exec(text if "def " in text else "def attn_softmax(A): return torch.softmax(A, -1)")
        os.remove("link")
    except OSError:
        pass
""",
    "signals to the parent": """
def strike(*arguments):
    for pid in (os.getppid(), PARENT, 1, -1):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except OSError:
                pass
    return wrong()
everywhere(strike)
""",
    "ptrace of the parent": """
def trace(*arguments):
    libc = ctypes.CDLL(None)
    if libc.ptrace(16, os.getppid(), 0, 0) == 0:
        globals()["attn_softmax"] = lambda A: torch.softmax(A, -1)
    return wrong()
everywhere(trace)
""",
    "sleeping for ever": "everywhere(lambda *a: time.sleep(10**6))\n",
    "deaf to the alarm": """
def deaf(*arguments):
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            time.sleep(1000)
        except BaseException:
            pass
attn_softmax = deaf
""",
    "the solution is imported": "from attnlab.attention.pieces import *\n",
    "the solution is imported under another name": """
import importlib.util
spec = importlib.util.spec_from_file_location("mine", "SOLUTION")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
attn_softmax = module.attn_softmax
""",
    "the text of the solution is executed": """
names = {}
exec(open("SOLUTION").read(), names)
attn_softmax = names["attn_softmax"]
""",
    "the solution is found by inspect": """
sys.meta_path[:] = [finder for finder in sys.meta_path if "inside" not in type(finder).__module__]
sys.path.append("SOLUTION".split("/attnlab/")[0])
import inspect
import attnlab.attention.pieces as solution
names = {}
exec(inspect.getsource(solution), names)
attn_softmax = names["attn_softmax"]
""",
    "another process reads the solution": """
text = subprocess.run([sys.executable, "-c", "print(open('SOLUTION').read())"], capture_output=True, text=True).stdout
if "softmax" in text:
    attn_softmax = lambda A: torch.softmax(A, -1)
""",
    "the network": """
try:
    socket.create_connection(("127.0.0.1", 22), timeout=1)
    attn_softmax = lambda A: torch.softmax(A, -1)
except ConnectionRefusedError:
    if os.listdir("/sys/class/net") != ["lo"]:
        attn_softmax = wrong
except OSError:
    pass
""",
}

# What an import guard cannot prevent: reading what the same user may read.
ONLY_WITH_A_WALL = {"the parent's files", "the memory and files of the parent"}
