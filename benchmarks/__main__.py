"""Run the quick benchmarks, each in a process of its own, and name the slow ones: python -m benchmarks."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

QUICK = ("speed", "revote", "search", "votes", "averages")
SLOW = (
    "cold_start",
    "jobs",
    "encode",
    "busy",
    "drag",
    "heads",
    "ablations",
    "leaks",
    "variants",
    "cleaning",
    "tables",
    "embedders",
    "protocol",
)


def told(name: str) -> str:
    """What a benchmark says of itself, without importing what it measures."""
    source = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def main() -> None:
    for name in QUICK:
        print(f"\n## {name}\n\n{told(name)}\n", flush=True)
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
        print(f"\n({time.perf_counter() - begun:.0f} s)", flush=True)
    print("\n## Slow ones, on their own\n")
    for name in SLOW:
        print(f"- {told(name).splitlines()[0]}")


if __name__ == "__main__":
    main()
