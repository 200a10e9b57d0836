"""Writes the sampled refusals to the audit, once a second."""

from holdfast.insight.refusals import RefusalAudit


class WriteRefusals:
    name = "write_refusals"

    def __init__(self, refusals: RefusalAudit) -> None:
        self._refusals = refusals

    async def once(self) -> float:
        await self._refusals.write()
        return 1.0
