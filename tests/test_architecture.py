"""The house keeps its shape: floors, one streamlit room, a web process without torch, files of a readable size."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = sorted((REPOSITORY / "attnknn").rglob("*.py"))
DOORS = [REPOSITORY / "app.py", *sorted((REPOSITORY / "pages").glob("*.py"))]

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "arrays", "intervals", "reporting"),
    ("config",),
    ("data", "jobs"),
    ("models",),
    ("bank", "checkpoints", "checks"),
    ("votes", "metrics", "calibration", "bundle", "shelf", "prepared", "projection"),
    ("ballot", "reliability", "asking"),
    ("prediction",),
    ("classifier",),
    ("by_hand",),
    ("evaluation",),
    ("training",),
    ("work", "plots"),
    ("ui",),
    ("cli", "pages", "app"),
    ("__main__",),
)
"""From the ground up. A module imports from floors below its own; rooms of one floor do not import each other."""

HEAVY = ("torch", "torchvision", "faiss", "umap", "numba")
"""What belongs to the worker: minutes of work, seconds of import, and crashes of its own."""

LONGEST_FILE = 300


def name_of(path: Path) -> str:
    """`attnknn/bank/memory.py` is attnknn.bank.memory, `pages/map.py` is pages.map."""
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of a module: what comes after attnknn, or the door itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "attnknn" and len(parts) > 1 else parts[0]


def imports_of(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Every module that a file imports anywhere, also inside functions and for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; name the module in full"
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def top(module: str) -> str:
    return module.split(".")[0]


# ---- Floors


@pytest.mark.parametrize("path", [*PACKAGE, *DOORS], ids=name_of)
def test_imports_run_downstairs_only(path: Path):
    room = room_of(name_of(path))
    if room == "attnknn":
        return  # the front door names everything, and imports it on first use; see below
    floor_of = {one: floor for floor, rooms in enumerate(FLOORS) for one in rooms}
    assert room in floor_of, f"the room {room} is on no floor; choose one in FLOORS"
    for module, node in imports_of(path):
        other = room_of(module)
        if top(module) == "attnknn" and other != room:
            assert floor_of[other] < floor_of[room], f"line {node.lineno}: {room} must not import {module}"


def test_the_front_door_imports_nothing_when_it_opens():
    tree = ast.parse((REPOSITORY / "attnknn" / "__init__.py").read_text(encoding="utf-8"))
    at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in at_once if isinstance(node, ast.ImportFrom)} == {
        "__future__",
        "importlib",
        "typing",
    }
    assert not any(isinstance(node, ast.Import) for node in at_once)


def test_streamlit_stays_in_its_room_and_at_the_doors():
    for path in PACKAGE:
        if room_of(name_of(path)) != "ui":
            assert all(top(module) != "streamlit" for module, _ in imports_of(path)), name_of(path)


def test_heavy_libraries_stay_in_the_rooms_that_work():
    allowed = {
        "torch": {"models", "training", "bank"},
        "torchvision": {"data"},
        "faiss": {"bank"},
        "umap": {"projection"},
    }
    for path in [*PACKAGE, *DOORS]:
        for library in {top(module) for module, _ in imports_of(path)} & {*HEAVY}:
            assert room_of(name_of(path)) in allowed[library], f"{name_of(path)} imports {library}"


# ---- What is imported when


def run_python(code: str, *arguments: object, **variables: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)} | variables
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_no_library_that_takes_time():
    slow = [*HEAVY, "pandas", "sklearn", "scipy", "streamlit", "plotly", "numpy"]
    code = f"import sys, attnknn; print([name for name in {slow} if name in sys.modules])"
    assert run_python(code) == "[]\n"


def test_classifying_by_id_needs_no_library_that_takes_time(shelf: Path):
    """Notebook, terminal and page: loading a checkpoint and asking about an item is NumPy alone."""
    slow = [*HEAVY, "pandas", "sklearn", "scipy", "streamlit"]
    code = (
        "import sys; from pathlib import Path; from attnknn import load, LabelNoise\n"
        "found = load('iris', Path(sys.argv[1])).predict_items(k=5, noise=LabelNoise('pair', 0.3))\n"
        "found.to_dict()\n"
        f"print([name for name in {slow} if name in sys.modules])"
    )
    assert run_python(code, shelf) == "[]\n"


def test_every_public_name_of_the_front_door_is_there():
    code = "import attnknn; print(all(getattr(attnknn, name) for name in attnknn.__all__))"
    assert run_python(code) == "True\n"


WEB_PROCESS = """
import importlib, pkgutil, sys
from streamlit.testing.v1 import AppTest
import attnknn.classifier, attnknn.evaluation, attnknn.ui

for package in (attnknn.ui, attnknn.evaluation):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
for page in [None, *sys.argv[1:]]:
    app = AppTest.from_file("app.py", default_timeout=120)
    if page:
        app.switch_page(page)
    app.run()
    assert not app.exception, app.exception
    assert not app.error, app.error
print([name for name in %r if name in sys.modules])
"""


def test_the_web_process_never_imports_the_workers_libraries(shelf: Path, tmp_path: Path):
    """Run the app and every page as a visitor would, import the rest of its room, and look."""
    pages = [path.relative_to(REPOSITORY).as_posix() for path in DOORS[1:]]
    folders = {"ATTNKNN_CHECKPOINTS": str(shelf), "ATTNKNN_JOBS": str(tmp_path)}
    assert run_python(WEB_PROCESS % (HEAVY,), *pages, **folders).splitlines()[-1] == "[]"


# ---- Reading


def public_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Public classes and functions, and public methods of public classes; not what is defined inside functions."""
    inside = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in inside:
        if node.name.startswith("_"):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            yield from (method for method in methods if not method.name.startswith("_"))


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_everything_public_says_what_it_is(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert path.name == "__main__.py" or ast.get_docstring(tree), f"{name_of(path)} has no docstring"
    for node in public_nodes(tree):
        assert ast.get_docstring(node), f"{name_of(path)}.{node.name}, line {node.lineno}, has no docstring"


def code_files() -> list[str]:
    """Everything under attnknn that a person wrote line by line."""
    found = [path for kind in ("*.py", "*.js", "*.css", "*.html") for path in (REPOSITORY / "attnknn").rglob(kind)]
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


@pytest.mark.parametrize("name", code_files())
def test_a_file_can_be_read_in_one_sitting(name: str):
    lines = len((REPOSITORY / name).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines"


def kept_files() -> list[Path]:
    """What git keeps, or would keep."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    if done.returncode != 0:
        pytest.skip("not a git repository")
    return [REPOSITORY / name for name in done.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


def test_no_path_of_one_machine_is_written_down():
    path_of_a_machine = re.compile(rb"(?<![\w.$}])/(?:work|tmp|root)/")
    wrong = []
    for path in kept_files():
        content = path.read_bytes()
        if b"\0" not in content:
            wrong += [
                f"{path.relative_to(REPOSITORY)}: {found.group()!r}" for found in path_of_a_machine.finditer(content)
            ]
    assert wrong == []
