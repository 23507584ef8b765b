"""nova-compute with the fake driver, and with an identity that survives a restart.

The driver draws another id of its node in each process, and nova-compute refuses to start with one that it does not know.
"""
import os
import sys

NODE = '0e2e0c0d-0b1e-4c1b-9a86-000000000001'


def main():
    from nova import monkey_patch
    # In older releases the import alone has done it, for eventlet.
    if hasattr(monkey_patch, 'patch'):
        monkey_patch.patch(backend='threading')
    from oslo_utils.fixture import uuidsentinel
    state_path, host = sys.argv.pop(1), sys.argv.pop(1)
    uuidsentinel._sentinels['node_' + host] = NODE
    os.makedirs(state_path, exist_ok=True)
    with open(os.path.join(state_path, 'compute_id'), 'w') as file:
        file.write(NODE)
    from nova.cmd import compute
    sys.exit(compute.main())
