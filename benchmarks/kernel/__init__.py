"""Support vector machines with kernels beside their peers."""
