"""Writes the models as a C header, so that a program can choose by them without reading JSON."""

import re

from fompi_model.models import read_piece

HEAD = """\
/* {layer} on {mpi}, measured {date} on {host}.
 * Times in ns, written by fompi-model. {count} functions; those of {where}. */
#ifndef FOMPI_MODEL_H
#define FOMPI_MODEL_H

#include <math.h>
"""


def identifier(name):
    """P_lock,excl as fompi_model_lock_excl"""
    return "fompi_model_" + re.sub(r"[^a-z0-9]+", "_", name[2:].lower())


def expression(piece, parameter):
    factors = {"x": f" * {parameter}", "log2": f" * log2({parameter})", "1": ""}
    return " + ".join(f"{factor:.6g}{factors[term]}" for term, factor in piece.terms.items()) or "0"


def function(model):
    parameter = model["parameter"]
    pieces = [read_piece(row) for row in model["pieces"]]
    new = model["new_points"]
    error = f"{100 * new['median']:.1f} % on {new['count']} new points" if new else "not known"
    head = [f"/* {model['meaning']}; median error {error}. */"]
    if not parameter:
        return "\n".join([*head, f"static inline double {identifier(model['name'])}(void) {{",
                          f"    return {expression(pieces[0], '')};", "}"])
    lines = [*head, f"static inline double {identifier(model['name'])}(double {parameter}) {{"]
    if len(pieces) == 1 and set(pieces[0].terms) <= {"1"}:
        lines.append(f"    (void){parameter};")
    for piece in pieces[:-1]:
        lines.append(f"    if ({parameter} <= {piece.high:.17g}) "
                     f"return {expression(piece, parameter)};")
    return "\n".join([*lines, f"    return {expression(pieces[-1], parameter)};", "}"])


def header(doc, where):
    models = [model for model in doc["models"] if model["where"] == where]
    head = HEAD.format(layer=doc["job"]["layer"], mpi=doc["job"]["mpi"], date=doc["made"]["date"],
                       host=doc["machine"]["host"], count=len(models), where=where)
    return "\n\n".join([head.rstrip(), *(function(model) for model in models), "#endif"]) + "\n"
