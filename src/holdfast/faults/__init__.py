"""Faults under load: a whole deployment, a crowd of buyers, one server killed, stopped or lied to in the middle of it, and
the judgement of everything that happened. `holdfast faults` runs it; `docs/faults.md` says what each fault is.
"""
