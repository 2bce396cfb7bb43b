"""Any module may be the first that a process imports: a Python worker starts with its task."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# In one process, for speed: what others made is kept, our own modules are forgotten in between.
PROGRAM = """
import importlib, sys
failed = []
for name in sys.argv[1:]:
    for known in [m for m in sys.modules if m.split(".")[0] == "skewless"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except Exception as failure:
        failed.append(f"{name}: {failure}")
sys.exit("\\n".join(failed) or 0)
"""


def test_every_module_can_be_imported_first() -> None:
    paths = sorted((ROOT / "skewless").rglob("*.py"))
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths]
    names = [n.removesuffix(".__init__") for n in names if not n.endswith(".__main__")]
    assert len(names) > 50
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
