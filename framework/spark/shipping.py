"""The package, and a user's own module, on their way to the executors."""

import atexit
import functools
import importlib
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext, cloudpickle

import headrace

__all__ = ["pickled_source", "ship_package"]


def ship_package(context: SparkContext) -> None:
    """Make headrace importable on the executors of a cluster, unless spark-submit's --py-files did.

    Local workers run on this interpreter and import what is installed.
    """
    if (context.master or "").startswith("local"):
        return
    archive = _zip_of_package()
    # A second run on the same session, or --py-files: Spark refuses a second file of a name.
    if archive.name not in {name.rpartition("/")[2] for name in context.listFiles}:
        context.addPyFile(str(archive))


def pickled_source(props: Mapping[str, str]) -> bytes | None:
    """The task class of a `connector.class=module:Class`, by value: its module need not be on the executors."""
    module_name, colon, name = props["connector.class"].partition(":")
    if not colon:
        return None
    module = importlib.import_module(module_name)
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(getattr(module, name)))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


@functools.cache
def _zip_of_package() -> Path:
    root = Path(headrace.__file__).parent
    if root.parent.suffix == ".zip":
        return root.parent
    # Executors fetch it from here whenever they start, so it stays for as long as this process.
    folder = Path(tempfile.mkdtemp(prefix="headrace-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "headrace.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, Path("headrace") / path.relative_to(root))
    return target
