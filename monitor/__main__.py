"""`python -m monitor …` is the same as `torchvitals …`."""

import sys

from monitor.cli import main

sys.exit(main())
