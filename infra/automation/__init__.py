"""Driving the Pulumi engine from this process, through the Automation API."""
