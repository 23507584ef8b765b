"""seed.py identity|network|compute: what a deployer and an operator set up once; run again it changes nothing."""
import sys

import openstack

PASSWORD = 'e2e'
ENDPOINTS = {'neutron': ('network', 'http://127.0.0.1:9696'), 'octavia': ('load-balancer', 'http://127.0.0.1:9876'),
             'barbican': ('key-manager', 'http://127.0.0.1:9311'), 'nova': ('compute', 'http://127.0.0.1:8774/v2.1'),
             'placement': ('placement', 'http://127.0.0.1:8778'), 'glance': ('image', 'http://127.0.0.1:9292')}
ROLES = ('service', 'creator', 'load-balancer_member', 'load-balancer_observer', 'load-balancer_admin')

cloud = openstack.connect(cloud='admin')


def identity():
    keystone = cloud.identity
    for name, (kind, url) in ENDPOINTS.items():
        service = next(keystone.services(type=kind), None) or keystone.create_service(name=name, type=kind)
        if next(keystone.endpoints(service_id=service.id), None) is None:
            for interface in ('public', 'internal', 'admin'):
                keystone.create_endpoint(service_id=service.id, interface=interface, region_id='RegionOne', url=url)
    roles = {role.name: role for role in keystone.roles()}
    roles.update({name: keystone.create_role(name=name) for name in ROLES if name not in roles})
    projects = {project.name: project for project in keystone.projects()}
    projects.update({name: keystone.create_project(name=name, domain_id='default')
                     for name in ('service', 'demo') if name not in projects})
    known = {user.name for user in keystone.users()}
    for name in [*ENDPOINTS, 'demo']:
        if name in known:
            continue
        user = keystone.create_user(name=name, password=PASSWORD, domain_id='default')
        project, wanted = ('demo', ('member', 'load-balancer_member', 'creator')) if name == 'demo' else \
            ('service', ('admin', 'service'))
        for role in wanted:
            keystone.assign_project_role_to_user(projects[project], user, roles[role])


def network():
    neutron = cloud.network
    demo = openstack.connect(cloud='demo').network
    if neutron.find_network('public'):
        return
    external = neutron.create_network(name='public', is_router_external=True, provider_network_type='flat',
                                      provider_physical_network='external')
    neutron.create_subnet(name='public-v4', network_id=external.id, ip_version=4, cidr='198.19.0.0/24',
                          gateway_ip='198.19.0.1', is_dhcp_enabled=False,
                          allocation_pools=[{'start': '198.19.0.10', 'end': '198.19.0.250'}])
    cluster = demo.create_network(name='cluster')
    subnet = demo.create_subnet(name='cluster-v4', network_id=cluster.id, ip_version=4, cidr='198.18.0.0/24',
                                gateway_ip='198.18.0.1', allocation_pools=[{'start': '198.18.0.50', 'end': '198.18.0.250'}])
    router = demo.create_router(name='cluster', external_gateway_info={'network_id': external.id})
    demo.add_interface_to_router(router, subnet_id=subnet.id)


def compute():
    if 'e2e' not in {flavor.name for flavor in cloud.compute.flavors()}:
        cloud.compute.create_flavor(name='e2e', ram=512, vcpus=1, disk=1)
    if not cloud.image.find_image('e2e'):
        cloud.image.create_image(name='e2e', disk_format='raw', container_format='bare', visibility='public', data=b'\0' * 512)


{'identity': identity, 'network': network, 'compute': compute}[sys.argv[1]]()
