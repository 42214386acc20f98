"""What this machine is and can do: cores, memory, devices, precisions."""
