"""The report: what a fit found, as one page and as facts for machines."""
