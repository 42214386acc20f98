"""This machine: cores, memory, devices, precisions."""
