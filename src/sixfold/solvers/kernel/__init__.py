"""Support vector machines in the space of a kernel."""
