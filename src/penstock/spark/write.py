"""Writing with Spark."""

from typing import Any


def write_dataframe(job: Any, df: Any) -> Any: ...
def map_files(tasks: Any, work: Any) -> Any: ...
