"""Tables larger than memory: sixfold's scan beside Spark MLlib and dask-ml, and how its cost grows."""
