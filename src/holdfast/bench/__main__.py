"""`python -m holdfast.bench [--quick] [--json] [--check] [--write FILE] [--only NAME,NAME]`."""

import sys

from holdfast.bench.main import main

sys.exit(main())
