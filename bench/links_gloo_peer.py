# SPDX-License-Identifier: Apache-2.0
"""The exchange of `gossamer bench links` as gloo's all-gather (torch.distributed), for links.py.

links_gloo_peer.py NODE ADDRESS,ADDRESS,... OPTIONS, as links_raw_peer.py. Every node gives as many bytes as it would
send to each peer. A round is over at a node when it has the bytes of all nodes.
"""

import json
import sys
import time

import torch
import torch.distributed

import links_raw_peer

PORT = 7400


def main():
    node, addresses, options = int(sys.argv[1]), sys.argv[2].split(","), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{addresses[0]}:{PORT}", rank=node - 1,
                                         world_size=len(addresses))
    mine = torch.zeros(options["exchange_bytes"], dtype=torch.uint8)
    everything = [torch.empty_like(mine) for _ in addresses]
    seconds, cpu = [], 0
    for number in range(links_raw_peer.UNCOUNTED + options["rounds"]):
        if number == links_raw_peer.UNCOUNTED:
            cpu = time.process_time()
        begin = time.monotonic()
        torch.distributed.all_gather(everything, mine)
        if number >= links_raw_peer.UNCOUNTED:
            seconds.append(time.monotonic() - begin)
    cpu = time.process_time() - cpu
    measured = {**links_raw_peer.figures("exchange", seconds, options["exchange_bytes"], options), "cpu_s": cpu}
    print(json.dumps({"nodes": [{"node": node, "measurements": [measured]}]}))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
