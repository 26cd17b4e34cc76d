"""Published prices of TPU chips, in dollars per chip and hour, without taxes and discounts of your own.

Where the figures come from, best first:

- `_PAGE`: Google's own price page. The copies of it that were found are older than v5e, so it was read through public
  notes that quote it with the day on which they read it; every figure stands in two sources at least. Where the notes'
  own address is not known, `via` is None.
- `_CATALOGUE`: SkyPilot's catalogue, which a program makes from Google's Cloud Billing SKUs (`TpuV5e`, `TpuV5p`,
  `TpuV6e`, `Tpu-v4 Pod`; sky/catalog/data_fetchers/fetch_gcp.py). The commit bears no day here; a machine image of
  2026-06-03 stands in the same commit, so it is not older than that. Its 700 stands for "not published" and is left
  out. v5p is the price of `tpu-v5p-12288` over its 6144 chips, v4 that of `tpu-v4-8` over 4, v5e and v6e that of one
  chip; spot prices are rounded to five digits there.
- `_DWS`: Google's price page of the Dynamic Workload Scheduler, quoted likewise. That page announced other prices for
  November 2026, which were not found.

No price of flex-start for v5p and v7x, of spot for v7x, and of commitments for v4, v5e and v5p by region was found.
"""

from datetime import date

from infra.plan.price import Mode, Price

_PAGE = "https://cloud.google.com/tpu/pricing"
_SKUS = "https://cloud.google.com/skus"
_DWS = "https://cloud.google.com/products/dws/pricing"
_CATALOGUE = (
    "https://github.com/skypilot-org/skypilot-catalog/blob/"
    "2c3d7ea7d76bf84cf80d382e946c1609571485fd/catalogs/v9/gcp/vms.csv"
)
_CATALOGUE_DAY = date(2026, 6, 3)

# Generation, then region: on-demand and spot; None: not published.
_FROM_CATALOGUE: dict[str, dict[str, tuple[float, float | None]]] = {
    "v4": {"us-central2": (3.22, 0.9215)},
    "v5e": {
        "asia-east1": (1.38948, 0.47652),
        "asia-northeast1": (1.54104, 0.2534),
        "asia-southeast1": (1.56, 0.78),
        "europe-north1": (1.32132, 0.66066),
        "europe-west1": (1.32132, 0.52853),
        "europe-west3": (1.416, 0.23284),
        "europe-west4": (1.56, 0.51011),
        "northamerica-northeast1": (1.32132, 0.21727),
        "southamerica-west1": (1.716, 0.28217),
        "us-central1": (1.2, 0.29771),
        "us-east1": (1.2, 0.29771),
        "us-east5": (1.2, 0.6),
        "us-south1": (1.416, 0.65419),
        "us-west1": (1.2, 0.29771),
        "us-west4": (1.2, 0.52536),
    },
    "v5p": {
        "europe-west1": (4.459455, 1.60986),
        "europe-west4": (4.2525, 1.04344),
        "us-central1": (4.2, 0.78049),
        "us-east1": (4.2, 0.78049),
        "us-east5": (4.2, 1.29995),
        "us-south1": (4.779, 0.78584),
    },
    "v6e": {
        "asia-northeast1": (3.24, 1.45707),
        "asia-south1": (3.24, 1.38895),
        "asia-southeast1": (2.97, 0.2673),
        "europe-west4": (2.97, 1.782),
        "southamerica-west1": (2.7, None),
        "us-central1": (2.7, 0.59266),
        "us-east1": (2.7, 0.59266),
        "us-east4": (2.7, 0.34491),
        "us-east5": (2.7, 1.27575),
        "us-south1": (2.7, 1.21838),
        "us-west1": (2.7, 0.59266),
    },
}


def _quoted(
    generation: str, region: str, mode: Mode, usd: float, day: date, source: str = _PAGE, via: str | None = None
) -> Price:
    changes_from = date(2026, 11, 1) if source == _DWS else None
    return Price(generation, region, mode, usd, source, day, via, changes_from)


_READ = date(2026, 9, 17)
_NEWER = (
    _quoted("v5e", "us-south1", "on-demand", 1.416, date(2026, 9, 26)),
    _quoted("v5e", "us-west4", "on-demand", 1.20, date(2026, 8, 10)),
    _quoted("v6e", "us-east1", "on-demand", 2.70, _READ),
    _quoted("v6e", "us-east5", "on-demand", 2.70, _READ),
    _quoted("v6e", "asia-northeast1", "on-demand", 3.24, _READ),
    _quoted("v7x", "us-central1", "on-demand", 12.00, _READ),
    _quoted("v7x", "europe-west2", "on-demand", 13.20, _READ),
    # The note was written after a disk of that day and before a run of 2026-10-02.
    _quoted("v5e", "us-west4", "flex-start", 0.60, date(2026, 9, 29), _DWS),
    _quoted(
        "v6e",
        "us-east5",
        "flex-start",
        1.35,
        date(2026, 9, 10),
        _DWS,
        "https://github.com/MALLI7622/AnalogDesignRL",
    ),
)
_COMMITTED = (
    _quoted("v6e", "us-east1", "1-year", 1.89, _READ),
    _quoted("v6e", "us-east1", "3-year", 1.22, _READ),
    _quoted("v6e", "us-east5", "1-year", 1.89, _READ),
    _quoted("v6e", "us-east5", "3-year", 1.22, _READ),
    _quoted("v7x", "us-central1", "1-year", 8.40, _READ),
    _quoted("v7x", "us-central1", "3-year", 5.40, _READ),
)

Key = tuple[str, str, Mode]


def _catalogue() -> dict[Key, Price]:
    rows: dict[Key, Price] = {}
    for generation, regions in _FROM_CATALOGUE.items():
        for region, (on_demand, spot) in regions.items():
            both: tuple[tuple[Mode, float | None], ...] = (("on-demand", on_demand), ("spot", spot))
            for mode, usd in both:
                if usd is not None:
                    row = Price(generation, region, mode, usd, _SKUS, _CATALOGUE_DAY, _CATALOGUE)
                    rows[generation, region, mode] = row
    return rows


def _keyed(prices: tuple[Price, ...]) -> dict[Key, Price]:
    return {(price.generation, price.region, price.mode): price for price in prices}


PRICES: dict[Key, Price] = {**_catalogue(), **_keyed(_NEWER)}
"""By generation, region and mode."""

COMMITMENTS: dict[Key, Price] = _keyed(_COMMITTED)
"""The same under a commitment, which is what stands behind most reservations."""
