"""Tables in files: CSV and its relatives, JSON lines, Parquet and Arrow, read whole or in batches."""
