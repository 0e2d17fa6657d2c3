"""``python -m benchmarks.scale.spark_peer FILE TASK cold|held``, in Spark's own environment.

MLlib in a Spark of two threads. Before the clock starts, the machine of Java is warm: a small table has been
fitted. "cold" counts reading the file and fitting; MLlib then keeps the rows in memory on its own. "held"
counts the fit alone, of rows that were assembled and cached in memory before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.scale.made_table import AMOUNT, COLUMNS, LABEL, forget

WARM_UP_ROWS = 100_000
# The loosest of 1e-2, 1e-3, ... with which 1,000,000 rows end within 1e-6 of the best objective.
TOLERANCE = {"logistic": 1e-3, "hinge": 1e-3}
# The share of the heap that caches may take is 0.6 by default: 20,000,000 rows would go to the disk.
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.memory.fraction": "0.8",
    "spark.driver.extraJavaOptions": "--add-modules=jdk.incubator.vector -XX:+UseParallelGC",
}
MEMORY = {"cold": "8g", "held": "14g"}


def session(memory: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def learner(task: str, rows: int) -> Any:
    """Return MLlib's counterpart."""
    from pyspark.ml.classification import LinearSVC, LogisticRegression
    from pyspark.ml.regression import LinearRegression

    if task == "logistic":
        return LogisticRegression(labelCol=LABEL, regParam=1.0 / rows, tol=TOLERANCE[task])
    if task == "hinge":
        return LinearSVC(labelCol=LABEL, regParam=1.0 / rows, tol=TOLERANCE[task], maxIter=1000)
    return LinearRegression(labelCol=AMOUNT, solver="normal")


def assembled(spark: Any, path: Path, target: str) -> Any:
    from pyspark.ml.feature import VectorAssembler

    table = spark.read.parquet(str(path))
    return (
        VectorAssembler(inputCols=list(COLUMNS), outputCol="features")
        .transform(table)
        .select("features", target)
    )


def processor_time(process: int) -> float:
    """Return the seconds that all threads of a process have had a core."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(path: Path, task: str, mode: str) -> dict[str, Any]:
    target = AMOUNT if task == "least squares" else LABEL
    spark = session(MEMORY[mode])
    small = assembled(spark, path.with_name(f"{WARM_UP_ROWS}.parquet"), target)
    learner(task, WARM_UP_ROWS).fit(small)
    if mode == "held":
        from pyspark import StorageLevel

        table = assembled(spark, path, target).persist(StorageLevel.MEMORY_AND_DISK)
        rows = table.count()
    else:
        rows = spark.read.parquet(str(path)).count()
        forget(path)
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    start, busy = time.perf_counter(), processor_time(process)
    if mode == "cold":
        table = assembled(spark, path, target)
    model = learner(task, rows).fit(table)
    seconds, busy = time.perf_counter() - start, processor_time(process) - busy
    found = {"seconds": seconds, "busy": busy, "coef": model.coefficients.toArray().tolist()}
    found["intercept"] = float(model.intercept)
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))
