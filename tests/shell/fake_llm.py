#!/usr/bin/env python3
"""A chat endpoint that fails as the prompt asks, for tests/shell/llm.t: fake_llm.py LOG [STEP...].
It listens on 127.0.0.1 and prints the port.

The user message may hold "script: step step ...". The k-th request with the same message gets step k; the
last step repeats. Without a script the steps are those of the command line, or else a kernel. Every request
is appended to LOG as one JSON line: path, key, step, requests in work, body, time, version. While a file
LOG.hold exists with a number N, the steps ok and kernel answer only the first N requests of LOG, so that a
test can act while the others wait.

With key and certificate in LOG.pem the server speaks TLS.

LOG.adapters names the server whose adapter routes to imitate: vllm (also without the file), sglang, or
another word for none. A model named quern-... is answered only while that adapter is loaded. A request with
return_token_ids gets ids: the bytes of the text + 40.
"""

import email.utils, gzip, http.server, json, os, re, socket, ssl, sys, threading, time

log = open(sys.argv[1], "a", buffering=1)
default = sys.argv[2:] or ["kernel:0.03"]
lock = threading.Lock()
seen, working, gathered, adapters = {}, 0, 0, set()


def until(condition):  # a minute at most
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)


def held(number):
    try:
        with open(sys.argv[1] + ".hold") as f:
            return int(f.read() or 0) < number
    except FileNotFoundError:
        return False


def kind():
    try:
        with open(sys.argv[1] + ".adapters") as f:
            return f.read().strip()
    except FileNotFoundError:
        return "vllm"


def with_ids(reply, prompt):
    ids = [40 + b for b in reply["choices"][0]["message"]["content"].encode()]
    reply["prompt_token_ids"] = [40 + b for b in prompt.encode()]
    reply["choices"][0]["token_ids"] = ids
    reply["choices"][0]["logprobs"] = {"content": [{"token": f"token_id:{i}", "logprob": -0.5} for i in ids]}
    return reply


def answer(text, finish="stop", **message):
    return {"id": "x", "model": "fake-1", "choices": [{"index": 0, "finish_reason": finish,
            "message": {"role": "assistant", "content": text, **message}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 5}}


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps({"model": "fake-s", "choices": [choice], **more}) + "\n\n"


def streamed(text):
    return chunk({"role": "assistant", "content": ""}) + "".join(chunk({"content": c}) for c in text)


def message(**fields):
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **fields}}]}


def empty(choice):
    return {"choices": choice, "model": "m"}


# Replies under status 200 that are no answer: text, bytes, or what becomes JSON.
USELESS = {
    "null": message(content=None), "no-content": message(), "number": message(content=7),
    "object": message(content={"text": "x"}), "tools": message(content=None, tool_calls=[{"id": "a"}]),
    "no-choices": {"id": "x", "model": "m"}, "null-choices": empty(None), "choices-object": empty({}),
    "no-message": empty([{"index": 0}]), "null-message": empty([{"message": None}]), "list": [1, 2],
    "choice-text": empty(["x"]), "text": '"fine"', "html": "<!DOCTYPE html><html><body>Sign in</body></html>",
    "blank": "", "blanks": "   \n", "null-body": "null", "plain": "upstream connect error",
    "utf8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}', "utf16": "\ufeff{}".encode("utf-16"),
    "bom-html": "\ufeff<html>", "cut-json": '{"ch',
    "twice": json.dumps(answer("a")) + json.dumps(answer("b")),
    "deep": "[" * 5000, "xml": "<?xml version='1.0'?><error/>", "error-text": {"error": "overloaded"},
    "error-list": {"error": [{"message": "try later"}]}, "sse-cut": streamed("half"),
    "sse-empty": "data:\n\n",
    "sse-html": "data: <html>\n\n", "sse-error": 'data: {"error": {"message": "out of memory"}}\n\n',
    "sse-null": "data: null\n\n", "sse-comment": ": ping\n\n: ping\n\n",
}

with open(sys.argv[1] + ".kinds", "w") as kinds:
    print(*USELESS, file=kinds)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        global working
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("load_lora_adapter"):
            return self.adapter(body)
        prompt = body["messages"][-1]["content"]
        script = re.search(r"script: (.*)", prompt)
        # A model that is named as a step with a value or a number is one that always takes it.
        model = body.get("model", "")
        # SGLang's name of an adapter, fake:quern-..., is none.
        named = [model] if re.fullmatch(r"\w+:(?!quern-)\S*|\d{3}|half|nothing|loc", model) else default
        steps = script.group(1).split() if script else named
        with lock:
            count = seen[prompt] = seen.get(prompt, 0) + 1
            working += 1
            now = working
        step = steps[min(count, len(steps)) - 1]
        key = self.headers.get("Authorization") or self.headers.get("x-api-key") or ""
        with lock:
            log.write(
                json.dumps(
                    {
                        "path": self.path,
                        "key": key,
                        "step": step,
                        "working": now,
                        "body": body,
                        "time": time.time(),
                        "version": self.headers.get("anthropic-version", ""),
                    }
                )
                + "\n"
            )
            self.number = sum(1 for _ in open(sys.argv[1]))
        try:
            self.play(step, body, prompt, key)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with lock:
                working -= 1

    def adapter(self, body):
        name, path = body["lora_name"], body.get("lora_path")
        with lock:
            log.write(json.dumps({"path": self.path, "body": body}) + "\n")
        def error(status, text):
            self.send(status, {"object": "error", "message": text, "type": "BadRequestError", "code": status})
        if self.path.startswith("/v1/") != (kind() == "vllm") or kind() not in ("vllm", "sglang"):
            return self.send(404, {"detail": "Not Found"})
        if "unload" in self.path:
            if name not in adapters:
                return error(404, f"The lora adapter '{name}' cannot be found.")
            adapters.remove(name)
        elif not os.path.exists(path + "/adapter_config.json"):
            return error(404, f"Loading lora {name} failed: No adapter found for {path}")
        elif name in adapters:
            return error(400, f"The lora adapter '{name}' has already been loaded.")
        else:
            with open(path + "/adapter_config.json") as f:
                rank = json.load(f)["r"]
            if rank > 32:
                return error(400, f"LoRA rank {rank} is greater than max_lora_rank 32.")
            adapters.add(name)
        self.send(
            200, {"success": True} if kind() == "sglang" else f"Success: LoRA adapter '{name}' done.".encode()
        )

    def play(self, step, body, prompt, key):
        model = body.get("model", "").rpartition(":")[2]
        if model.startswith("quern-") and model not in adapters:
            self.send(
                404,
                {
                    "object": "error",
                    "message": f"The model `{model}` does not exist.",
                    "type": "NotFoundError",
                },
            )
            return
        name, _, value = step.partition(":")
        error = {"error": {"message": "said the fake server", "type": "t", "code": None}}
        if name in ("ok", "kernel"):
            until(lambda: not held(self.number))
        if name == "ok":
            time.sleep(float(value or 0))
            self.send(200, answer("echo " + prompt.split(" ")[0]))
        elif name == "kernel":  # a candidate for the task relu, by the request's seed; one in four is wrong
            time.sleep(float(value))
            block, function = 32 << body.get("seed", 0) % 5, (
                "fminf" if body.get("seed", 0) % 4 == 0 else "fmaxf"
            )
            reply = answer(
                "## Performance Analysis\na\n## Algorithm Design\nb\n## Code Implementation\n```cuda\n"
                f"//@ launch k<<<ceil_div(n, {block}), {block}>>>(x, y, n)\n"
                "__global__ void k(const float *x, float *y, int n) {\n"
                f"    int i = blockIdx.x * {block} + threadIdx.x;\n"
                f"    if (i < n) y[i] = {function}(x[i], 0.0f);\n}}\n```"
            )
            self.send(200, with_ids(reply, prompt) if body.get("return_token_ids") else reply)
        elif name == "long":
            self.send(
                400,
                {
                    "object": "error",
                    "message": "9000 tokens, and the maximum context length is 8192",
                    "code": 400,
                },
            )
        elif name == "429":
            self.send(429, error, **({"Retry_After": value} if value else {}))
        elif name == "429ms":
            self.send(429, error, Retry_After_Ms=value)
        elif name == "429date":
            self.send(429, error, Retry_After=email.utils.formatdate(time.time() + float(value), usegmt=True))
        elif name == "garbage":
            self.wfile.write(b"HTTP/1.1 what?\r\n\r\n")
            self.close_connection = True
        elif name == "crowded":  # 429 while more than VALUE requests are in work
            time.sleep(0.02)
            over = working > int(value)
            self.send(429 if over else 200, error if over else answer("not crowded"))
        elif name == "together":  # once VALUE requests with this step are in work
            global gathered
            with lock:
                gathered += 1
            until(lambda: gathered >= int(value))
            self.send(200, answer("together"))
        elif name == "remaining":
            self.send(200, answer("few left"), x_ratelimit_remaining_requests=value)
        elif name.isdigit():
            self.send(int(name), error)
        elif name == "never":
            self.send(500, error, x_should_retry="false")
        elif name == "quota":
            self.send(
                429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
            )
        elif name == "echokey":
            self.send(400, {"error": {"message": "bad header " + key}})
        elif name == "keyanswer":
            self.send(200, answer("your header is " + key))
        elif name == "truncated":
            self.send(200, json.dumps(answer("x")).encode()[:-20])
        elif name == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif name == "nothing":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif name == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(1000):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        elif name == "huge":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for _ in range(40):
                self.wfile.write(b" " * (1 << 20))
        elif name == "bomb":
            self.send(200, gzip.compress(b" " * (40 << 20)), Content_Encoding="gzip")
        elif name == "gzip":
            self.send(200, gzip.compress(json.dumps(answer("unzipped")).encode()), Content_Encoding="gzip")
        elif name == "useless":
            reply = USELESS[value]
            self.send(200, reply.encode() if isinstance(reply, str) else reply)
        elif name == "bom":
            self.send(200, b"\xef\xbb\xbf" + json.dumps(answer("after a mark")).encode())
        elif name == "sse":  # a stream, although none was asked for
            usage = chunk({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 5}) if value else ""
            self.send(200, (": hello\n\n" + streamed("a stream") + (usage or chunk({}, "stop")) +
                            "data: [DONE]\n\n").encode())
        elif name == "onlysse":  # nothing else is offered, and its options are not known
            refusal = {"error": {"message": "stream must be true" if not body.get("stream")
                                 else "Unknown parameter: 'stream_options'."}}
            if not body.get("stream") or "stream_options" in body:
                self.send(400, refusal)
            else:
                self.send(200, (streamed("a stream") + chunk({"reasoning": "deep"}, "length")).encode())
        elif name == "claudesse":
            events = [{"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 9}}},
                      {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
                      {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ab"}},
                      {"type": "message_delta", "delta": {"stop_reason": "max_tokens"},
                       "usage": {"output_tokens": 4}}, {"type": "message_stop"}]
            self.send(200, "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())
        elif name == "nousage":
            reply = answer("x" * int(value or 8))
            reply["usage"] = None
            self.send(200, reply)
        elif name == "loc":  # FastAPI's list
            self.send(422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]}
                      ) if "seed" in body else self.send(200, answer("no seed"))
        elif name == "nested":  # Mistral's object
            detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are no good"}]
            self.send(422, {"object": "error", "message": {"detail": detail}}
                      ) if "seed" in body else self.send(200, answer("no seed"))
        elif name == "google":
            self.send(400, [{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name "
                                       '"seed": Cannot find field.', "status": "INVALID_ARGUMENT"}}]
                      ) if "seed" in body else self.send(200, answer("no seed"))
        elif name == "googlekey":
            said = "API key not valid. Please pass a valid API key."
            self.send(400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}])
        elif name == "key200":
            self.send(200, {"error": {"message": "No auth credentials found", "code": 401}})
        elif name == "key500":
            self.send(500, {"detail": "Invalid API key"})
        elif name == "none":
            self.send(200, {"choices": [], "model": "fake-1"})
        elif name == "two":
            reply = answer("first")
            reply["choices"].insert(
                0, {"index": 1, "finish_reason": "stop", "message": {"content": "second"}}
            )
            self.send(200, reply)
        elif name == "error200":
            self.send(200, error)
        elif name == "length":
            self.send(200, answer("cut", "length"))
        elif name == "filter":
            self.send(200, answer("", "content_filter"))
        elif name == "reasoning":
            self.send(200, answer("fine", reasoning_content="deep"))
        elif name == "think":
            self.send(200, answer("<think>deep</think>\n\nfine"))
        elif name == "closed":  # the opening tag was in the prompt
            self.send(200, answer("deep</think>\n\nfine"))
        elif name == "halfpair":  # json.dumps writes half of a surrogate pair as \\ud83d
            self.send(200, answer("fine \ud83d"))
        elif name == "newname":
            if "max_tokens" in body:
                self.send(
                    400,
                    {
                        "error": {
                            "message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
                            "param": "max_tokens",
                            "code": "unsupported_parameter",
                        }
                    },
                )
            else:
                self.send(200, answer("new name"))
        elif name == "redirect":
            self.send(307, b"", Location="http://127.0.0.1:9/elsewhere")
        elif name == "claude":
            self.send(
                200,
                {
                    "model": "fake-c",
                    "stop_reason": value or "end_turn",
                    "usage": {"input_tokens": 1, "output_tokens": 2},
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "a"},
                        {"type": "text", "text": "b"},
                    ],
                },
            )


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
if os.path.exists(sys.argv[1] + ".pem"):  # key and certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1] + ".pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
