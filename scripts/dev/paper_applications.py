"""The applications on the page of scripts/paper: a table of message passing, the MPI's own
one-sided layer and libfompi, and a picture of each program over ranks."""

from paper_numbers import MESSAGES, OURS, PLAIN, Cells, name_of, shown
from paper_page import PLACES, escaped, said


def ratio(value):
    """A cell with a ratio; below 1 it is marked."""
    if value is None:
        return "<td>-</td>"
    return f'<td class={"slower" if value < 0.97 else "same"}>{value:.2f}</td>'


def cell(cells, key, layer):
    """The median, and the least and the 90th percentile behind it."""
    row = cells.row(key, layer)
    if row is None:
        return "-"
    numbers = (shown(cells.nanoseconds(key, layer, which)) for which in ("seconds", "least", "p90"))
    return "{} ({} to {})".format(*numbers)


def table(page, applications, record):
    """One line for each application, place, MPI and number of ranks above 1. With more ranks than cores a
    time is one of the scheduler: there are no ratios."""
    lines = []
    for application in applications:
        cells = Cells(application, record.rows)
        for key in cells.keys():
            row = cells.row(key, OURS)
            if key[2] == 1 or row is None:
                continue
            fits = key[2] <= record.cores(row)
            message = cells.row(key, MESSAGES)
            lines.append([name_of(application), {"node": "one node"}.get(key[0], key[0]), key[1], key[2],
                          *(cell(cells, key, layer) for layer in (MESSAGES, PLAIN, OURS)),
                          message["variant"] if message else "-", row["runs"],
                          *(ratio(cells.times(key, layer) if fits else None) for layer in (MESSAGES, PLAIN))])
    page.table(["application", "place", "MPI", "ranks", "messages", "plain", "libfompi", "fastest messages",
                "rounds", "× messages", "× plain"], lines)


def section(page, applications, record):
    page.add("<h2>Applications</h2>\n<p>The programs of <code>examples</code>, each verified by itself, in "
             "turns: the fastest of their message-passing variants on the MPI alone, one-sided on the MPI "
             "alone (plain), one-sided with libfompi. A time is the median of the rounds, with the least and "
             "the 90th percentile. The last two columns say how many times faster libfompi is than messages "
             "and than plain; below 1 it is slower. They are empty with more ranks than cores.</p>\n")
    table(page, applications, record)
    for application in applications:
        cells, name = Cells(application, record.rows), name_of(application)
        drawn = ""
        for place in PLACES:
            lines = cells.lines(place)
            drawn += page.picture(f"application-{name}-{place}", f"{name}, {PLACES[place].lower()}", "ranks",
                                  "time", "ns", lines, sorted({mpi for mpi, _, _ in lines}))
        if not drawn and page.selected is not None:
            continue
        paper = (f"<b>The paper:</b> {said(application['paper'])}" if "paper" in application
                 else "Not in the papers.")
        page.add(f"<h3>{escaped(application['figure'])}</h3>\n<p>{paper}</p>\n<p><b>Here:</b> <code>"
                 f"{escaped((application['program'] + ' ' + application['arguments']).strip())}"
                 f"</code>; messages: the fastest of <code>{', '.join(application['messages'])}</code>, "
                 f"one-sided: <code>{application['onesided']}</code>. {said(application.get('differs', ''))}"
                 f"</p>\n<div class=panels>\n{drawn or '<p>Not measured in this run.</p>'}</div>\n")
