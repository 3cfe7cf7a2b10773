"""How hard the property tests search, and where decoded manifests go.

The profile `default` is the same on every run, `slow` looks for what is new.
HYPOTHESIS_PROFILE chooses. Tests leave the number of examples to it: a `max_examples` of their own would win.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "slow",
    max_examples=20_000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Decoded manifests of test tables do not belong into anybody's cache folder.
_CACHE = tempfile.mkdtemp(prefix="penstock-tests-")
os.environ["PENSTOCK_CACHE_DIR"] = _CACHE
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
