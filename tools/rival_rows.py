"""The driver of rival.py: processes that measure, a limit for each subject, and a table that a later call
continues.

A worker reads one question a line and answers with rows. It prepares on the CPU beside the others, and asks
for the GPU, which one worker has at a time. A worker that dies or takes too long is replaced. Nothing here
imports PyTorch.
"""

import collections
import json
import os
import select
import subprocess
import time

START_SECONDS = 180
COLUMNS = ("task", "axes", "gpu", "torch", "precision", "way", "us", "us_low", "us_high",
           "ratio", "ratio_low", "ratio_high", "runs", "error")
KEY = ("task", "axes", "gpu", "torch", "precision", "way")

# axes: a dictionary of sizes. given: what the worker needs to build the subject. ways: pairs of a precision
# and a way.
Subject = collections.namedtuple("Subject", "task axes given ways")


def axes_text(axes):
    return json.dumps(axes, sort_keys=True, separators=(",", ":"))


def field(value):
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace("\t", " ").replace("\n", " ")


def read_table(path):
    """The rows of a table, as dictionaries of text. A torn last line is cut off the file."""
    if not path or not os.path.exists(path):
        return []
    with open(path, "r+b") as file:
        data = file.read()
        if data and not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
        lines = data.decode().split("\n")[:-1]
    if lines and lines[0] != "\t".join(COLUMNS):
        raise SystemExit(f"rival.py: {path} begins with other columns than {' '.join(COLUMNS)}")
    return [dict(zip(COLUMNS, line.split("\t"))) for line in lines[1:]]


class Table:
    """Rows are written as soon as they are known. again: known rows with an error count as missing."""

    def __init__(self, path, again):
        rows = read_table(path)
        self.known = {tuple(r[c] for c in KEY) for r in rows if not (again and r["error"])}
        self.file = open(path, "a") if path else os.fdopen(os.dup(1), "w")
        if not rows and not (path and os.path.getsize(path)):
            print("\t".join(COLUMNS), file=self.file, flush=True)

    def missing(self, subject, machine):
        where = (subject.task, axes_text(subject.axes), machine["gpu"], machine["torch"])
        return [w for w in subject.ways if where + tuple(w) not in self.known]

    def write(self, subject, machine, rows):
        for row in rows:
            row = {**row, **machine, "task": subject.task, "axes": axes_text(subject.axes)}
            key = tuple(row[c] for c in KEY)
            if key in self.known:
                continue
            self.known.add(key)
            self.file.write("\t".join(field(row.get(c, "")) for c in COLUMNS) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.data, self.job, self.since, self.left = b"", None, time.monotonic(), START_SECONDS
        self.ready = self.waits = False  # waits: for the GPU, which does not count

    def say(self, what):
        try:
            self.process.stdin.write(json.dumps(what).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the end of its output says so

    def begin(self, job, seconds):
        self.job, self.since, self.left = job, time.monotonic(), seconds

    def rest(self):
        self.job, self.left, self.ready = None, float("inf"), True

    def wait(self):
        self.left -= time.monotonic() - self.since
        self.waits = True

    def go(self):
        self.since, self.waits = time.monotonic(), False
        self.say({"go": 1})

    def late(self):
        return not self.waits and time.monotonic() - self.since > self.left

    def read(self):
        """The lines that have come; None: the process has ended."""
        more = os.read(self.process.stdout.fileno(), 1 << 16)
        if not more:
            return None
        *lines, self.data = (self.data + more).split(b"\n")
        return [json.loads(line) for line in lines]

    def status(self):
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "unknown"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Driver:
    """given: output, again, seconds, limit, jobs."""

    def __init__(self, command, subjects, given):
        self.command, self.given, self.begun = command, given, time.monotonic()
        self.table = Table(given.output, given.again)
        self.todo = collections.deque((s, 1) for s in subjects)  # and how often it may still fail
        self.alone = collections.deque()  # what did not fit beside the others
        self.workers, self.machine, self.holder, self.left = [], None, None, 0
        self.queue = collections.deque()  # workers that wait for the GPU

    # ---- what comes next ----

    def over(self):
        return time.monotonic() - self.begun > self.given.seconds

    def take(self):
        """The next job with ways that the table does not have; None: there is none now."""
        while self.todo:
            subject, tries = self.todo.popleft()
            ways = self.table.missing(subject, self.machine)
            if ways:
                return subject._replace(ways=ways), tries
        if self.alone and not any(w.job for w in self.workers):
            return self.alone.popleft(), 0
        return None

    def feed(self, worker):
        job = self.take()
        if not job:
            return
        worker.begin(job, self.given.limit)
        worker.say({"task": job[0].task, "axes": job[0].axes, "given": job[0].given, "ways": job[0].ways})

    # ---- what workers say ----

    def grant(self):
        if not self.holder and self.queue:
            self.holder = self.queue.popleft()
            self.holder.go()

    def release(self, worker):
        if worker in self.queue:
            self.queue.remove(worker)
        if self.holder is worker:
            self.holder = None

    def rows(self, worker, rows):
        subject, tries = worker.job
        worker.rest()
        if tries and any("out of memory" in r.get("error", "") for r in rows):
            self.alone.append(subject)
            rows = [r for r in rows if "out of memory" not in r.get("error", "")]
        self.table.write(subject, self.machine, rows)

    def heard(self, worker, line):
        if "gpu" in line:
            self.known_machine({"gpu": line["gpu"], "torch": line["torch"]})
            worker.rest()
        elif "want" in line:
            worker.wait()
            self.queue.append(worker)
        elif "done" in line:
            self.release(worker)
        else:
            self.rows(worker, line["rows"])

    def known_machine(self, machine):
        self.machine = machine
        self.todo = collections.deque(job for job in self.todo if self.table.missing(job[0], machine))

    def lost(self, worker, why):
        """Ways are measured once more without what is compiled, which is what mostly fails."""
        self.release(worker)
        self.workers.remove(worker)
        worker.stop()
        if not worker.ready:
            raise SystemExit(f"rival.py: no worker starts: {why}")
        if not worker.job:
            return
        subject, tries = worker.job
        eager = [w for w in subject.ways if w[1] == "eager"]
        failed = [w for w in subject.ways if w[1] != "eager"] if tries and eager else subject.ways
        self.table.write(subject, self.machine, [{"precision": p, "way": w, "error": why} for p, w in failed])
        if tries and eager:
            self.todo.appendleft((subject._replace(ways=eager), 0))

    def look(self):
        self.grant()
        ready = select.select([w.process.stdout for w in self.workers], [], [], 0.5)[0]
        for worker in list(self.workers):
            lines = worker.read() if worker.process.stdout in ready else []
            for line in lines or []:
                self.heard(worker, line)
            if lines is None:
                self.lost(worker, f"the process ended with status {worker.status()}")
            elif worker.late():
                self.lost(worker, f"took over {self.given.limit:.0f} s")

    def start(self):
        """One worker first, which says what machine this is; then as many as there is work for."""
        most = min(self.given.jobs, len(self.todo) + len(self.alone) + sum(bool(w.job) for w in self.workers))
        while len(self.workers) < (most if self.machine else 1):
            self.workers.append(Worker(self.command))

    def run(self):
        """Returns how many subjects are left."""
        try:
            while not self.over():
                if not (self.todo or self.alone or any(w.job for w in self.workers)):
                    break
                self.start()
                for worker in self.workers:
                    if worker.ready and not worker.job:
                        self.feed(worker)
                self.look()
        finally:
            self.left = len(self.todo) + len(self.alone) + sum(bool(w.job) for w in self.workers)
            for worker in self.workers:
                worker.stop()
        return self.left
