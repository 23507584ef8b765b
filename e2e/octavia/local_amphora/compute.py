"""Octavia compute driver: an "instance" is a directory; its ports are real Neutron ports."""
import collections
import functools
import os
import shutil
import signal

import openstack
from octavia.common import constants
from octavia.common import data_models
from octavia.compute import compute_base
from oslo_utils import uuidutils

from local_amphora import state

# What Nova's os-interface answer looks like to the allowed_address_pairs driver.
NovaInterface = collections.namedtuple('NovaInterface', 'net_id port_id fixed_ips')
ServerGroup = collections.namedtuple('ServerGroup', 'id')
# Any address works: nothing is ever sent to it.
MANAGEMENT_IP = '192.0.2.1'


@functools.lru_cache(maxsize=None)
def neutron():
    """Octavia's own client is another one before 2023.2."""
    return openstack.connect(cloud='octavia').network


class LocalComputeDriver(compute_base.ComputeBase):
    def build(self, name='amphora_name', amphora_flavor=None, image_tag=None,
              image_owner=None, key_name=None, sec_groups=None,
              network_ids=None, config_drive_files=None, user_data=None,
              port_ids=None, server_group_id=None, availability_zone=None):
        amphora_id = name[len('amphora-'):]
        state.fault('compute_build', amphora_id)
        compute_id = uuidutils.generate_uuid()
        directory = os.path.join(state.ROOT, 'compute')
        os.makedirs(directory, exist_ok=True)
        os.makedirs(state.amphora_dir(amphora_id), exist_ok=True)
        with open(os.path.join(directory, compute_id), 'w') as f:
            f.write(amphora_id)
        return compute_id

    def delete(self, compute_id):
        state.fault('compute_delete', compute_id)
        path = os.path.join(state.ROOT, 'compute', compute_id)
        try:
            with open(path) as f:
                amphora_id = f.read()
        except OSError:
            return
        remove_amphora(amphora_id)
        os.remove(path)

    def status(self, compute_id):
        return constants.UP

    def get_amphora(self, compute_id, management_network_id=None):
        return data_models.Amphora(compute_id=compute_id, status=constants.ACTIVE,
                                   lb_network_ip=MANAGEMENT_IP), None

    def create_server_group(self, name, policy):
        return ServerGroup(id=uuidutils.generate_uuid())

    def delete_server_group(self, server_group_id):
        pass

    def attach_network_or_port(self, compute_id, network_id=None, ip_address=None, port_id=None):
        network = neutron()
        if port_id is None:
            arguments = {'network_id': network_id}
            if ip_address:
                arguments['fixed_ips'] = [{'ip_address': ip_address}]
            port_id = network.create_port(**arguments).id
        port = network.update_port(port_id, device_id=compute_id)
        return NovaInterface(port.network_id, port.id, port.fixed_ips)

    def detach_port(self, compute_id, port_id):
        try:
            neutron().update_port(port_id, device_id='')
        except Exception:
            pass

    def validate_flavor(self, flavor_id):
        pass

    def validate_availability_zone(self, availability_zone):
        pass


def remove_amphora(amphora_id):
    directory = state.amphora_dir(amphora_id)
    for name in ('keepalived.pid', 'haproxy.pid', 'metrics.pid'):
        try:
            with open(os.path.join(directory, name)) as f:
                for pid in f.read().split():
                    os.kill(int(pid), signal.SIGTERM)
        except (OSError, ValueError):
            pass
    if os.path.exists('/run/netns/amp-' + amphora_id):
        state.run('ip', 'netns', 'del', 'amp-' + amphora_id, check=False)
    shutil.rmtree(directory, ignore_errors=True)
