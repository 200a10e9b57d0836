"""What can be refused about a scan before it is decided."""

from holdfast.kernel.errors import Conflict


class ScanIdReused(Conflict):
    """An id is one scan's: where two shared it, the second person would get the first's answer."""

    code = "scan_id_reused"

    def __init__(self) -> None:
        super().__init__("This scan_id belongs to another scan, of another ticket or direction. Nothing was recorded.")
