"""How far Spark is with its work: the tasks that are done, of those of the stages that run.

The jobs of a step carry a tag of its own, so that those of other threads are not counted. A tag, unlike a job group,
leaves alone what a program has set to tell or cancel its jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.progress import Counted, is_shown, progress
from penstock.spark.session.session import is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_TASKS = 4


@contextmanager
def progress_of_tasks(doing: str, spark: SparkSession) -> Iterator[None]:
    """Show what is being done, and how many tasks of the jobs that this thread runs for it are done.

    On Spark Connect they are not counted: what runs there is not known here.
    """
    if not is_shown() or is_connect(spark):
        with progress(doing):
            yield
        return
    context, tag = spark.sparkContext, f"penstock-{uuid4().hex}"
    context.addJobTag(tag)
    try:
        with progress(doing, lambda: running_tasks(context, tag)):
            yield
    finally:
        context.removeJobTag(tag)


def tasks_at_once(spark: SparkSession) -> int:
    """How many tasks run at the same time; a guess on Spark Connect."""
    return _TASKS if is_connect(spark) else max(1, int(spark.sparkContext.defaultParallelism))


def running_tasks(context: SparkContext, tag: str) -> Counted | None:
    """The tasks of the running stages of jobs with a tag; any thread may ask. None while no stage runs."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(i) for i in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]
    own = {i for job in jobs if job is not None for i in job.stageIds}
    stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds() if i in own]
    running = [stage for stage in stages if stage is not None]
    if not running:
        return None
    return Counted(sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running), "task")
