"""``python -m live``."""

import sys

from live.run import main

sys.exit(main())
