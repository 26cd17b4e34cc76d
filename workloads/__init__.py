"""What runs on the slices. A pod gets only this package; it never imports `infra`."""
