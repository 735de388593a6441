"""How true the figures of many ranks are: communication against two other measurements, late ranks by seed.

    python benchmarks/ranks.py [--seeds N] [--share | --straggler | --cost]
    python benchmarks/ranks.py --simulate 1024 [--seconds S]

Two ranks over gloo on this machine. *share*: exposed communication as the probe measured it, beside
torch.profiler over the same steps (from the end of the arithmetic to the end of the last gloo operation; it
leaves out the copying back of buckets, which belongs to the exchange), and beside the same job in groups of
one, so that only the exchange is gone (which also gives back what its threads took from the arithmetic that
they ran beside). *late*: of N runs in which one rank sleeps for a tenth of the step, in how many it is named;
of N balanced runs, in how many anybody is. *cost*: microseconds a step that the probe adds on each rank, bare
and watched taking turns: of time, which on two cores is mostly waiting and changes with where threads run,
and of the training thread's CPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from gloo_ranks import LoopState, together

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.detectors.distributed import straggler

#: Steps before those that are compared, and how many are.
WARM_UP, STEPS = 10, 40
#: The late rank sleeps for this share of its own first steps, in so many steps.
DELAY, LATE_STEPS = 0.1, 300

NETWORKS = {
    "DDP, MLP of 2.6 million": "wide(1500)",
    "DDP, embedding of 2.6 million": "nn.Sequential(nn.EmbeddingBag(40000, 64), nn.Linear(64, 10))",
    "FSDP2, MLP of 2.6 million": "wide(1500)",
}

MAKE = """
    import json
    def wide(n):
        return nn.Sequential(nn.Linear(256, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 10))

    def step():
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
"""

SHARE = (
    MAKE
    + """
    kind = {kind!r}
    net, alone = {network}, {network}
    groups = [dist.new_group([each]) for each in range(2)]
    x = torch.randint(0, 40000, (64, 16)) if "embedding" in kind else torch.randn(64, 256)
    if "FSDP2" in kind:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(net)
        fully_shard(alone, mesh=DeviceMesh.from_group(groups[rank], "cpu", mesh=[rank]))
        model = net
    else:
        model = DistributedDataParallel(net)
        alone = DistributedDataParallel(alone, process_group=groups[rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.001)
    for _ in range({warm_up}):
        step()
    dist.barrier()
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range({steps}):
            step()
    timed = []
    for _ in range({steps}):
        began = time.perf_counter()
        step()
        timed.append(time.perf_counter() - began)
    events = profiled.events()
    ends = sorted(e.time_range.start for e in events if e.name.startswith("Optimizer.step#"))
    gloo = sorted(e.time_range.end for e in events if "gloo:" in e.name)
    calls = sorted(e.time_range.start for e in events if e.name.startswith("c10d::"))
    nodes = sorted(e.time_range.end for e in events if e.name.startswith("autograd::engine"))
    exposed, before = [], 0
    for end in ends:
        def inside(times):
            return [t for t in times if before < t < end]
        if "FSDP2" in kind:
            exposed.append(sum(b - a for a, b in zip(inside(calls), inside(gloo))) / 1e3)
        else:
            last = [max(inside(times), default=float("nan")) for times in (gloo, nodes)]
            exposed.append((last[0] - last[1]) / 1e3)
        before = end
    dist.barrier()
    model, opt, without = alone, torch.optim.SGD(alone.parameters(), lr=0.001), []
    for _ in range({warm_up}):
        step()
    for _ in range({steps}):
        began = time.perf_counter()
        step()
        without.append(time.perf_counter() - began)
    dist.barrier()
    Path(f"told-{{rank}}.json").write_text(json.dumps(dict(exposed=exposed, timed=timed, without=without)))
    model = nn.Linear(1, 1)
"""
)

LATE = (
    MAKE
    + """
    def queued_s():
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    model = DistributedDataParallel(wide(800))
    opt = torch.optim.SGD(model.parameters(), lr=0.001)
    x, took, delay = torch.randn(64, 256), [], 0.0
    for number in range({steps}):
        began = time.perf_counter()
        if rank == {late}:
            time.sleep(delay)
        step()
        took.append(time.perf_counter() - began)
        if number == 19:
            delay = {share} * sorted(took[5:])[7]
            since, waited = time.perf_counter(), queued_s()
    share = (queued_s() - waited) / (time.perf_counter() - since)
    Path(f"told-{{rank}}.json").write_text(json.dumps(dict(runq_share=share)))
    model = nn.Linear(1, 1)
"""
)

COST = (
    MAKE
    + """
    model, x = DistributedDataParallel(nn.Linear(32, 32)), torch.randn(16, 32)
    opt = torch.optim.SGD(model.parameters(), lr=0.001)
    def chunk():
        began, busy = time.perf_counter(), time.thread_time()
        for _ in range(50):
            step()
        return [(time.perf_counter() - began) / 50 * 1e6, (time.thread_time() - busy) / 50 * 1e6]
    for _ in range(300):
        step()
    bare, watched = [], []
    probe.finish(code=0)
    for number in range(40):
        on = number % 4 in (1, 2)  # neither comes first more often: the machine changes meanwhile
        if on:
            name = f"turn-{{rank}}-{{number}}"
            tape = TapeWriter(name + ".tape", rank=rank, world_size=2, local_rank=rank, slots=1024)
            probe = Probe(Recorder(tape, JournalWriter(name + ".journal")))
            for _ in range(30):
                step()
        dist.barrier()
        (watched if on else bare).extend(chunk() for _ in range(10))
        if on:
            probe.finish(code=0)
    probe = None
    Path(f"told-{{rank}}.json").write_text(json.dumps(dict(bare=bare, watched=watched)))
    model = nn.Linear(1, 1)
"""
)


def run(body: str, **values: object) -> tuple[list[LoopState], list[dict[str, list[float]]]]:
    """Two ranks; what the probe told, and what the script did."""
    with tempfile.TemporaryDirectory() as folder:
        told = together(Path(folder), body.format(**values), timeout_s=600)
        paths = [Path(folder) / f"told-{rank}.json" for rank in range(2)]
        return told, [json.loads(path.read_text()) if path.exists() else {} for path in paths]


def share() -> None:
    """Print the share of communication by all three."""
    for kind, network in NETWORKS.items():
        told, own = run(SHARE, kind=kind, network=network, warm_up=WARM_UP, steps=STEPS)
        for rank, (seen, said) in enumerate(zip(told, own, strict=True)):
            profiled, after = (
                slice(WARM_UP + 2, WARM_UP + STEPS),
                slice(WARM_UP + STEPS + 2, WARM_UP + 2 * STEPS),
            )
            comm, step = (np.asarray(seen.columns[key]) for key in ("comm_ms", "step_ms"))
            exposed = np.asarray(said["exposed"][2:])
            without = 1 - statistics.median(said["without"]) / statistics.median(said["timed"])
            probe = [float(np.median(comm[part] / step[part])) for part in (profiled, after)]
            beside = float(np.nanmedian(exposed / step[profiled]))
            print(
                f"{kind:30} rank {rank}: probe {probe[0]:.3f}, profiler over the same steps {beside:.3f};",
                end="",
            )
            print(f" probe {probe[1]:.3f}, without exchange {without:.3f} less")


def judged(late: int | None) -> Finding | None:
    """What the detector says of one run, from the step on at which the delay begins."""
    told, own = run(LATE, late=late, share=DELAY, steps=LATE_STEPS + 20)
    ranks = {}
    for number, seen in enumerate(told):
        table = {key: np.asarray(values)[20:] for key, values in seen.columns.items()}
        table |= {"step": np.arange(20, 20 + LATE_STEPS), "t_s": np.cumsum(table["step_ms"]) / 1e3}
        # As the agent samples it: the main thread's wait for a CPU.
        samples = {"t_s": table["t_s"][-1:], "runq_share": np.array([own[number]["runq_share"]])}
        ranks[number] = Rank(number, steps=table, samples=samples, facts=seen.facts)
    return straggler.detect(Window(now_s=60.0, ranks=ranks, world_size=len(ranks)))


def late(seeds: int) -> None:
    """Print in how many runs the late rank, and nobody, is named; both kinds take turns."""
    named = right = wrong = 0
    for seed in range(seeds):
        named += judged(None) is not None
        finding = judged(seed % 2)
        right += finding is not None and finding.ranks == (seed % 2,)
        wrong += finding is not None and finding.ranks != (seed % 2,)
        print(
            f"of {seed + 1}: balanced {named} named; late by {DELAY:.0%} {right} right, {wrong} wrong",
            flush=True,
        )


def cost() -> None:
    """Print what the probe adds."""
    _, own = run(COST)
    for rank, said in enumerate(own):
        bare, watched = (np.median(np.asarray(said[key]), axis=0) for key in ("bare", "watched"))
        wall, busy = watched - bare
        print(
            f"rank {rank}: {bare[0]:.0f} µs a step, {wall:+.0f} by medians; "
            f"of the training thread's CPU {bare[1]:.0f} µs, {busy:+.0f}"
        )


def main() -> None:
    """Run what was asked for."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--seeds", type=int, default=20)
    ask.add_argument("--only", choices=("share", "late", "cost"))
    for name, kind in (("--share", "share"), ("--straggler", "late"), ("--cost", "cost")):
        ask.add_argument(name, dest="only", action="store_const", const=kind, help=f"as --only {kind}")
    ask.add_argument("--simulate", type=int, metavar="RANKS", help="see benchmarks/crowd.py")
    ask.add_argument("--seconds", type=float, default=60.0)
    args = ask.parse_args()
    if args.simulate:
        crowd = Path(__file__).with_name("crowd.py")
        hosts = str(max(args.simulate // 8, 1))
        command = [sys.executable, str(crowd), "--hosts", hosts, "--seconds", str(args.seconds)]
        raise SystemExit(subprocess.run(command, check=False).returncode)
    if args.only in (None, "share"):
        share()
    if args.only in (None, "late"):
        late(args.seeds)
    if args.only in (None, "cost"):
        cost()


if __name__ == "__main__":
    main()
