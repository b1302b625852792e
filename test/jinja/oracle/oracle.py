#!/usr/bin/python3
"""What real Jinja2 makes of templates, in the environment that PaV promises.

Reads cases {"template": TEXT, "ctx": {...}} from standard input, one a line, and writes one line for
each at once: {"ok": TEXT, "yaml": bool, "value": ...}, {"error": CLASS, "stage": STAGE}, or
{"error": "limit"} where Python itself gave up: out of time, memory or stack.
"""
import gc
import json
import resource
import shlex
import signal
import sys

import yaml
from jinja2 import TemplateSyntaxError, Undefined, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS_PER_CASE = 2
MEMORY = 2 << 30


class OutOfTime(BaseException):
    """Not an Exception, so that nothing in Jinja takes it for one of its own."""


def finalize(value):
    if isinstance(value, Undefined):
        raise UndefinedError("undefined")
    if not isinstance(value, (str, int, float)):
        raise TypeError("neither a string nor a number")
    return str(value)


def tobash(value):
    text = finalize(value)
    if "\0" in text:
        raise ValueError("no word of the shell has a NUL")
    if not text:
        return "''"
    return R"$'\n'".join(shlex.quote(part) if part else "" for part in text.split("\n"))


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, finalize=finalize)
    env.filters["tobash"] = tobash
    return env


def classify(error):
    for kind, name in (
        (TemplateSyntaxError, "syntax"),
        (SecurityError, "security"),
        (UndefinedError, "undefined"),
        (TypeError, "type"),
    ):
        if isinstance(error, kind):
            return name
    return "other"


def evaluate(env, builtins, source, context):
    env.globals = {**builtins, **context}
    stage = "compile"
    try:
        template = env.from_string(source)
        stage = "render"
        module = template.make_module()
        text = str(module)
        flag = getattr(module, "yaml", False)
        if not isinstance(flag, bool):
            raise TypeError("yaml is not a bool")
        result = {"ok": text, "yaml": flag}
        if flag:
            stage = "yaml"
            result["value"] = plain(yaml.safe_load(text))
        return result
    except (RecursionError, MemoryError, OutOfTime):
        return {"error": "limit"}
    except Exception as error:  # whatever it is, its class is the result
        return {"error": classify(error), "stage": stage, "message": f"{type(error).__name__}: {error}"[:200]}


def plain(value):
    """value, which YAML gave, as JSON can say it: as json.dumps would, and reprs of what it cannot."""
    if isinstance(value, dict):
        return {key(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return {"__repr__": repr(value)}


def key(value):
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise ValueError("no field can have a key of another type")


def out_of_time(*_):
    raise OutOfTime


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, out_of_time)
    env = environment()
    builtins = dict(env.globals)
    gc.freeze()
    for line in sys.stdin.buffer:
        case = json.loads(line)
        signal.alarm(SECONDS_PER_CASE)
        try:
            result = evaluate(env, builtins, case["template"], case["ctx"])
            text = json.dumps(result)
        except (OutOfTime, MemoryError):
            text = '{"error": "limit"}'
        finally:
            signal.alarm(0)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
