"""The report: what a fit found, as one page and as facts for machines."""

from sixfold.app.report.cautions import Caution, find_cautions
from sixfold.app.report.page import Report, make_report, write_report

__all__ = ["Caution", "Report", "find_cautions", "make_report", "write_report"]
