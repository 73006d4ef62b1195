"""Rows of eager.py: processes that measure, a limit for each task, and a file that a later call continues.

A worker answers each line that it reads with one line. Several workers prepare tasks side by side, which is
the CPU's work; then one after another measures, with the GPU to itself. A worker that dies or takes too long
is replaced, and its task is a row with the reason. Nothing here imports PyTorch.
"""

import collections
import json
import os
import select
import subprocess
import time

START_SECONDS = 120

Task = collections.namedtuple("Task", "name path axes")


class Failed(Exception):
    """The worker is gone; the text says why."""


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.data = b""

    def ask(self, question):
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer says so

    def answer(self, seconds):
        """The next line, within so many seconds."""
        end = time.monotonic() + seconds
        while b"\n" not in self.data:
            left = max(0, end - time.monotonic())  # what has come counts, however late this process looks
            if not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                raise Failed(f"took over {seconds:.0f} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                try:
                    self.process.wait(5)
                except subprocess.TimeoutExpired:
                    pass
                self.stop()
                raise Failed(f"the process ended with status {self.process.returncode}")
            self.data += more
        line, self.data = self.data.split(b"\n", 1)
        return json.loads(line)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def key(name, axes):
    return name, json.dumps(axes, sort_keys=True)


def known_rows(path, again):
    """What the file has. A torn last line is dropped; again: rows with an error do not count."""
    known = set()
    if not path or not os.path.exists(path):
        return known
    with open(path, "r+b") as file:
        data = file.read()
        if data and not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
        for line in data.split(b"\n")[:-1]:
            row = json.loads(line)
            if not (again and ("error" in row or "best_error" in row)):
                known.add(key(row["task"], row["axes"]))
    return known


class Pool:
    def __init__(self, command, jobs, limit):
        self.command, self.limit, self.idle, self.gpu = command, limit, [None] * jobs, {}

    def worker(self, slot):
        """The slot's process, which is started where there is none. The caller waits for its first line."""
        if self.idle[slot] is None:
            self.idle[slot] = Worker(self.command)
            return self.idle[slot], True
        return self.idle[slot], False

    def open(self, slots):
        started = [(slot, worker) for slot, (worker, new) in ((s, self.worker(s)) for s in slots) if new]
        for slot, worker in started:
            try:
                self.gpu = worker.answer(START_SECONDS)
            except Failed as e:
                raise SystemExit(f"eager.py: no worker starts: {e}") from None

    def ask(self, slot, what, task, seconds):
        """One question and its answer; a worker that fails leaves its slot empty."""
        self.idle[slot].ask({"do": what, **task._asdict()})
        return self.answer(slot, seconds)

    def answer(self, slot, seconds):
        try:
            return self.idle[slot].answer(seconds)
        except Failed as e:
            self.idle[slot] = None
            return {"error": str(e)}

    def batch(self, tasks, prepare):
        """Yields a row for each of at most as many tasks as there are slots."""
        slots, why = range(len(tasks)), {}
        self.open(slots)
        begin = time.monotonic()
        for slot, task in enumerate(tasks):
            if prepare:
                self.idle[slot].ask({"do": "prepare", **task._asdict()})
        for slot in slots:
            if prepare:
                left = max(0.1, begin + self.limit - time.monotonic())
                why[slot] = self.answer(slot, left).get("error")
                if why[slot] and why[slot].startswith("took over"):
                    why[slot] = f"took over {self.limit:.0f} s"
        for slot, task in enumerate(tasks):
            self.open([slot])
            row = {"task": task.name, "axes": task.axes}
            row.update(self.ask(slot, "measure", task, self.limit))
            if why.get(slot):
                row["best_error"] = why[slot]
            row.update(self.gpu)
            yield row

    def close(self):
        for worker in self.idle:
            if worker:
                worker.stop()


def run(command, tasks, given):
    """Measures tasks until given.seconds are over; rows go to given.output or to stdout. Returns how many are
    left."""
    begin, known = time.monotonic(), known_rows(given.output, given.again)
    todo = [t for t in tasks if key(t.name, t.axes) not in known]
    pool = Pool(command, min(given.jobs, max(1, len(todo))), given.limit)
    file = open(given.output, "a") if given.output else None
    done = 0
    try:
        while done < len(todo) and time.monotonic() - begin < given.seconds:
            for row in pool.batch(todo[done:done + given.jobs], given.compile):
                print(json.dumps(row), file=file, flush=True)
                done += 1
                if time.monotonic() - begin > given.seconds:
                    break
    finally:
        pool.close()
    return len(todo) - done
