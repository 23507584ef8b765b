"""What Neutron's OVN driver would write into OVN's northbound database: switches, their ports, routers inside.

Reads Neutron's database whenever something has changed there. The keys are those of `neutron/common/ovn/constants.py`, as
far as ovn-octavia-provider reads them. Gateways, addresses translated by routers, security groups and DHCP are left out:
nobody forwards packets with what is here.
"""
import ipaddress
import sys
import time
import traceback

from ovsdbapp.backend.ovs_idl import connection
from ovsdbapp.schema.ovn_northbound import impl_idl

from local_amphora.neutron import Database

INTERFACE = 'network:router_interface'


def cidrs(port, subnets):
    return ['%s/%d' % (address, ipaddress.ip_network(subnets[subnet]).prefixlen) for address, subnet in port.fixed_ips]


def switch_port(port, subnets, floating_ips):
    """The columns of a port of a switch."""
    external_ids = {
        'neutron:port_name': port.name, 'neutron:device_id': port.device_id, 'neutron:device_owner': port.device_owner,
        'neutron:network_name': 'neutron-' + port.network_id, 'neutron:project_id': port.project_id or '',
        'neutron:security_group_ids': ' '.join(port.security_group_ids), 'neutron:cidrs': ' '.join(cidrs(port, subnets))}
    if port.id in floating_ips:
        external_ids['neutron:port_fip'] = floating_ips[port.id]
    columns = {'external_ids': external_ids, 'enabled': [True],
               'addresses': [' '.join([port.mac_address] + [address for address, _ in port.fixed_ips])]}
    if port.device_owner == INTERFACE:
        columns.update(type='router', addresses=['router'], options={'router-port': 'lrp-' + port.id})
    elif port.device_owner.endswith(':distributed'):
        columns.update(type='localport')
    return columns


def write(api, network, physical):
    """Everything in one transaction. What is unchanged is written again, which nobody sees."""
    floating_ips = {row['fixed_port_id']: row['floating_ip_address'] for row in network.floating_ips if row['fixed_port_id']}
    # The interfaces of a router, and nothing that leads to a gateway.
    ports = [port for port in network.ports if port.device_owner != 'network:router_gateway']
    networks = sorted({port.network_id for port in network.ports})
    with api.transaction(check_error=True) as transaction:
        for name in networks:
            external_ids = {'neutron:provnet-physical-network': physical[name]} if physical.get(name) else {}
            transaction.add(api.ls_add('neutron-' + name, may_exist=True, external_ids=external_ids))
        for router in network.routers:
            transaction.add(api.lr_add('neutron-' + router, may_exist=True))
    with api.transaction(check_error=True) as transaction:
        gone = {row.name for row in api.db_list_rows('Logical_Switch_Port').execute(check_error=True)} - {port.id for port in ports}
        for name in gone:
            transaction.add(api.lsp_del(name, if_exists=True))
        for port in ports:
            transaction.add(api.lsp_add('neutron-' + port.network_id, port.id, may_exist=True))
            if port.device_owner == INTERFACE:
                transaction.add(api.lrp_add(
                    'neutron-' + port.device_id, 'lrp-' + port.id, port.mac_address, cidrs(port, network.subnets),
                    may_exist=True, external_ids={'neutron:network_name': 'neutron-' + port.network_id}))
    with api.transaction(check_error=True) as transaction:
        for port in ports:
            columns = switch_port(port, network.subnets, floating_ips)
            row = api.lookup('Logical_Switch_Port', port.id)
            for name, value in columns.items():
                # Keys that are no longer there must go, which `db_set` does not do.
                if name == 'external_ids' and dict(row.external_ids) != value:
                    transaction.add(api.db_clear('Logical_Switch_Port', port.id, name))
                transaction.add(api.db_set('Logical_Switch_Port', port.id, (name, value)))


def main():
    idl = connection.OvsdbIdl.from_server(sys.argv[1], 'OVN_Northbound')
    api = impl_idl.OvnNbApiIdlImpl(connection.Connection(idl=idl, timeout=30))
    database, seen = Database(), None
    while True:
        try:
            now = database.state()
            if now != seen:
                segments = database.rows('SELECT network_id, physical_network FROM networksegments')
                write(api, database.read(), {row['network_id']: row['physical_network'] for row in segments})
                seen = now
        except Exception:
            traceback.print_exc()
            seen = None
        time.sleep(0.2)
