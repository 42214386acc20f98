"""One run in several processes: each works on a part of every batch, the first one writes.

`place`     who this process is, from what torchrun, srun or the lab's own launcher say
`team`      the few things processes must agree on; nothing else in the lab touches torch.distributed
`sharding`  a model cut up among them (FSDP), and put together again
`launcher`  starts a command several times on this machine, passes signals on, and tells why one died
`machines`  the launchers of several machines: what they tell each other
`endings`   how processes ended, and which one is the cause
"""
