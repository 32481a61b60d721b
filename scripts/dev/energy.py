"""Energy of the processors and their memory, by RAPL: counters of Linux in /sys/class/powercap. A counter
counts microjoules up to a maximum, then begins at 0 again; root alone may read it on most systems."""

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class Energy:
    """The counters of all packages and of their memory. intel-rapl-mmio counts the same packages again,
    and psys, core and uncore are more than a package, or parts of one. `lacking`: why there are none."""

    def __init__(self, powercap=POWERCAP):
        self.zones, self.lacking = [], f"no RAPL counters in {powercap}"
        try:
            for zone in sorted(powercap.glob("intel-rapl:*")):
                name = (zone / "name").read_text().strip()
                if name.startswith("package-") or name == "dram":
                    most = int((zone / "max_energy_range_uj").read_text())
                    self.zones.append((zone / "energy_uj", most))
            self.read()
        except OSError as error:
            self.zones, self.lacking = [], f"{error.filename}: {error.strerror}"

    def __bool__(self):
        return bool(self.zones)

    def read(self):
        return [int(counter.read_text()) for counter, _ in self.zones]

    def since(self, before):
        """The joules since an earlier reading, between which no counter began again twice."""
        pairs = zip(before, self.read(), self.zones)
        return sum((after - start) % (most + 1) for start, after, (_, most) in pairs) / 1e6


class Spent:
    """The joules and the seconds of the runs of each engine."""

    def __init__(self, energy):
        self.energy, self.found = energy, {}

    def add(self, engine, before, seconds):
        """A run has ended that began at the reading `before`."""
        joules, passed = self.found.get(engine, (0, 0))
        self.found[engine] = joules + self.energy.since(before), passed + seconds

    def lines(self):
        """For the head of a CSV."""
        if not self.energy:
            return [f"energy: not measured: {self.energy.lacking}"]
        return [f"energy: {engine}: {joules:.1f} J in {seconds:.1f} s of its runs"
                for engine, (joules, seconds) in self.found.items()]
