"""What Neutron's server tells its agents, read where it keeps it: in its database.

Agents get this by messages; there is no agent here to send them to. The API has the same, but each of its lists costs
a processor tens of milliseconds, which a machine with two of them has better use for.
"""
import dataclasses

import pymysql
import pymysql.cursors


@dataclasses.dataclass
class Port:
    id: str
    name: str
    network_id: str
    mac_address: str
    device_id: str
    device_owner: str
    project_id: str
    # Without a row there is nothing that switches it off.
    is_port_security_enabled: bool = True
    # Pairs of address and subnet.
    fixed_ips: list = dataclasses.field(default_factory=list)
    address_pairs: list = dataclasses.field(default_factory=list)
    security_group_ids: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Network:
    """Everything of one moment."""
    # Prefix by id of the subnet.
    subnets: dict
    ports: list
    # Destination and next hop of each extra route, by id of the router.
    routers: dict
    floating_ips: list
    # Rules by id of the group.
    security_groups: dict


class Database:
    CHANGES = 'SELECT COUNT(*) AS count, MAX(id) AS last, SUM(revision_number) AS revisions FROM standardattributes'

    def __init__(self):
        self.connection = pymysql.connect(host='127.0.0.1', user='e2e', password='e2e', database='neutron',
                                          autocommit=True, cursorclass=pymysql.cursors.DictCursor)

    def rows(self, query):
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def state(self):
        """Differs after each change: every object has a row of standard attributes, whose revision grows with it."""
        return self.rows(self.CHANGES)

    def read(self):
        self.rows('START TRANSACTION WITH CONSISTENT SNAPSHOT')
        try:
            return Network(
                subnets={row['id']: row['cidr'] for row in self.rows('SELECT id, cidr FROM subnets')},
                ports=self.ports(),
                routers=self.routers(),
                floating_ips=self.rows('SELECT floating_ip_address, fixed_ip_address, fixed_port_id, router_id FROM floatingips'),
                security_groups=self.security_groups())
        finally:
            self.rows('COMMIT')

    def ports(self):
        ports = {row['id']: Port(**row) for row in
                 self.rows("SELECT id, COALESCE(name, '') AS name, network_id, mac_address, device_id, device_owner, project_id FROM ports ORDER BY id")}
        for row in self.rows('SELECT port_id, port_security_enabled FROM portsecuritybindings'):
            ports[row['port_id']].is_port_security_enabled = bool(row['port_security_enabled'])
        for row in self.rows('SELECT port_id, ip_address, subnet_id FROM ipallocations WHERE port_id IS NOT NULL ORDER BY ip_address'):
            ports[row['port_id']].fixed_ips.append((row['ip_address'], row['subnet_id']))
        for row in self.rows('SELECT port_id, ip_address FROM allowedaddresspairs ORDER BY ip_address'):
            ports[row['port_id']].address_pairs.append(row['ip_address'])
        for row in self.rows('SELECT port_id, security_group_id FROM securitygroupportbindings ORDER BY security_group_id'):
            ports[row['port_id']].security_group_ids.append(row['security_group_id'])
        return list(ports.values())

    def routers(self):
        routers = {row['id']: [] for row in self.rows('SELECT id FROM routers')}
        for row in self.rows('SELECT router_id, destination, nexthop FROM routerroutes'):
            routers[row['router_id']].append((row['destination'], row['nexthop']))
        return routers

    def security_groups(self):
        groups = {row['id']: [] for row in self.rows('SELECT id FROM securitygroups')}
        for row in self.rows('SELECT security_group_id, remote_group_id, direction, ethertype, protocol, port_range_min,'
                             ' port_range_max, remote_ip_prefix FROM securitygrouprules ORDER BY id'):
            groups[row['security_group_id']].append(row)
        return groups
