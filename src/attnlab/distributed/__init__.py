"""One run in several processes: each works on a part of every batch, and the first one writes.

`rank`      which of the processes this one is, from the environment of torchrun, srun or the lab's launcher
`team`      the few things processes must agree on; the only part of the lab that uses torch.distributed directly
`sharding`  a model sharded among the processes (FSDP), and gathered again
`exits`     how processes ended, and which of them caused a failure

The launcher, which starts the processes, is in attnlab.launch.
"""
