"""The picture of README as SVG. Each row has a bar of the host MPI and a bar of libfompi; the longer
one is as wide as the picture allows. The picture has a background of its own, light or dark."""

from decimal import Decimal
from html import escape

WIDTH, LABELS, BARS = 640, 262, 276
ROW, HEAD, BAR = 48, 36, 15
STYLE = """<style>
text{font:16px system-ui,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.head{font-weight:600}.back{fill:#fff}.host{fill:#9aa4af}.ours{fill:#0969da}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#161b22}.host{fill:#6e7781}.ours{fill:#58a6ff}}
</style>"""


def time_name(ns):
    """A time with three digits, in a unit that people read."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= factor:
            break
    else:
        unit, factor = "ns", 1
    value = ns / factor
    digits = max(0, 2 - value.adjusted())
    return f"{value:.{digits}f} {unit}"


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}"{kind}>{escape(words)}</text>\n'


def bar(y, kind, ns, longest):
    width = max(2, round(BARS * ns / longest))
    return (f'<rect class="{kind}" x="{LABELS}" y="{y}" width="{width}" height="{BAR}" rx="2"/>\n'
            + text(LABELS + width + 6, y + BAR - 1, time_name(ns)))


def svg(title, parts):
    """`parts`: (heading, rows); a row: (label, host, ours), with times in ns."""
    y, body = 30, ""
    x = LABELS
    for kind, name in (("host", "host MPI"), ("ours", "libfompi")):
        body += f'<rect class="{kind}" x="{x}" y="{y - 12}" width="{BAR}" height="{BAR}" rx="2"/>\n'
        body += text(x + BAR + 6, y, name)
        x += 110
    for heading, rows in parts:
        body += text(16, y, heading, ' class="head"')
        y += HEAD - 16
        for label, host, ours in rows:
            body += text(16, y + BAR + 7, label)
            body += bar(y, "host", host, max(host, ours)) + bar(y + BAR + 3, "ours", ours, max(host, ours))
            y += ROW
        y += 22
    height = y - 22
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">\n<title>{escape(title)}</title>\n{STYLE}\n'
            f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>\n{body}</svg>\n')


def faster_host(pairs):
    """The times of the MPI that is faster by itself: (host, ours) of (host, ours) for each MPI."""
    return min((Decimal(host), Decimal(ours)) for host, ours in pairs)
