"""Octavia's network driver for Neutron, which asks for Neutron's extensions once.

Octavia makes its driver anew for each task of a flow, and each new one asks for three extensions. One of them is not
there, for which the SDK reads the list of all: half of what the worker does in a flow. They do not change while
Neutron runs.
"""
from octavia.network.drivers.neutron import allowed_address_pairs


class RememberingDriver(allowed_address_pairs.AllowedAddressPairsDriver):
    extensions = {}

    def _check_extension_enabled(self, extension_alias):
        if extension_alias not in self.extensions:
            self.extensions[extension_alias] = super()._check_extension_enabled(extension_alias)
        return self.extensions[extension_alias]
