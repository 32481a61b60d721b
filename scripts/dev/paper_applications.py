"""The applications on the page of scripts/paper: a table of message passing, the MPI's own
one-sided layer and libfompi, and a picture of each program over ranks."""

from paper_numbers import Cells, shown, times
from paper_page import escaped, said


def ratio(value):
    """A cell with a ratio; below 1 it is marked."""
    if value is None:
        return "<td>-</td>"
    return f'<td class={"slower" if value < 0.97 else "same"}>{value:.2f}</td>'


def name_of(application):
    return application.get("name", application["program"])


KINDS = (("plain", "messages", "messages"), ("plain", "onesided", "plain"),
         ("libfompi", "onesided", "libfompi"))


def table(page, applications, rows):
    """One line for each application, place, MPI and number of ranks above 1."""
    lines = []
    for application in applications:
        cells, compared = Cells(application, rows), application["compared"]
        for key in cells.keys():
            if key[2] == 1:
                continue
            messages = cells.value(key, "plain", "messages")
            plain = cells.value(key, "plain", "onesided")
            ours = cells.value(key, "libfompi", "onesided")
            lines.append([name_of(application), {"node": "one node"}.get(key[0], key[0]), key[1],
                          key[2], shown(messages, compared), shown(plain, compared),
                          shown(ours, compared), ratio(times(ours, messages, compared)),
                          ratio(times(ours, plain, compared))])
    page.table(["application", "place", "MPI", "ranks", "messages", "plain", "libfompi",
                "× messages", "× plain"], lines)


def section(page, applications, rows):
    page.add("<h2>Applications</h2>\n<p>The programs of <code>examples</code>, each verified by "
             "itself: by message passing on the MPI, one-sided on the MPI alone (plain), one-sided "
             "with libfompi. The last two columns say how many times better libfompi is than "
             "messages and than plain; below 1 it is worse.</p>\n")
    table(page, applications, rows)
    for application in applications:
        cells = Cells(application, rows)
        compared = application["compared"]
        drawn = ""
        for place, where in (("node", "one node"), ("nodes", "between nodes")):
            lines = cells.lines(place, KINDS)
            mpis = sorted({mpi for mpi, _, _ in lines})
            name = name_of(application)
            drawn += page.picture(f"application-{name}-{place}", f"{name}, {where}", "ranks",
                                  "time" if compared == "seconds" else compared,
                                  "ns" if compared == "seconds" else "1/s", lines, mpis)
        if not drawn and page.selected is not None:
            continue
        paper = (f"<b>The paper:</b> {said(application['paper'])}" if "paper" in application
                 else "Not in the papers.")
        page.add(f"<h3>{escaped(application['figure'])}</h3>\n<p>{paper}</p>\n<p><b>Here:</b> <code>"
                 f"{escaped((application['program'] + ' ' + application['arguments']).strip())}"
                 f"</code>; messages: <code>{application['messages']}</code>, one-sided: <code>"
                 f"{application['onesided']}</code>. {said(application.get('differs', ''))}</p>\n"
                 f"<div class=panels>\n{drawn or '<p>Not measured in this run.</p>'}</div>\n")
