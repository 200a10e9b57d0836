"""What can be refused about a scan before it is decided."""

from holdfast.kernel.errors import Conflict


class ScanIdReused(Conflict):
    """A scan's id is the gate's own word for one scan: where two share it, the second person would get the first's answer."""

    code = "scan_id_reused"

    def __init__(self) -> None:
        super().__init__("This scan_id belongs to another scan, of another ticket or direction. Nothing was recorded.")
