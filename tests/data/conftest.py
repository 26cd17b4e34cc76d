"""Settings of these tests: how long one example takes is no property of the code."""

from hypothesis import HealthCheck, settings

settings.register_profile("no-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no-deadline")
