"""Gunicorn's configuration for every API; E2E_SERVICE says which one."""
import gc
import os
import sys

STATE, VENV = '@STATE@', '@VENV@'
name = os.environ['E2E_SERVICE']
# Name: port, application, arguments, environment.
port, wsgi_app, arguments, environment = {
    'keystone': (5000, 'keystone_application:application', [],
                 {'OS_KEYSTONE_CONFIG_FILES': STATE + '/etc/keystone/keystone.conf'}),
    'neutron': (9696, 'neutron_application:application', [],
                {'OS_NEUTRON_CONFIG_DIR': STATE + '/etc/neutron', 'OS_NEUTRON_CONFIG_FILES': 'neutron.conf;ml2.ini'}),
    'octavia': (9876, 'octavia_application:application',
                ['--config-file', STATE + '/etc/octavia/octavia.conf', '--log-file', STATE + '/log/octavia-api.log'], {}),
    'barbican': (9311, 'barbican_application:application', [], {'HOME': STATE + '/etc'}),
    'placement': (8778, 'placement_application:application', [], {'OS_PLACEMENT_CONFIG_DIR': STATE + '/etc/placement'}),
    'glance': (9292, 'glance_application:application', [],
               {'OS_GLANCE_CONFIG_DIR': STATE + '/etc/glance', 'OS_GLANCE_CONFIG_FILES': 'glance-api.conf'}),
    # The first of its files must be the one of paste.
    'nova': (8774, 'nova_application:application', ['--log-file', STATE + '/log/nova-api.log'],
             {'OS_NOVA_CONFIG_DIR': '/', 'OS_NOVA_CONFIG_FILES': VENV + '/etc/nova/api-paste.ini;' + STATE + '/etc/nova/nova.conf'}),
}[name]
bind = '127.0.0.1:%d' % port
workers = 1
worker_class = 'gthread'
threads = 6
keepalive = 75
timeout = 120
graceful_timeout = 3
pythonpath = STATE + '/etc/wsgi'
accesslog = STATE + '/log/%s.access.log' % name
access_log_format = '%(t)s "%(m)s %(U)s?%(q)s" %(s)s %(b)s %(M)sms "%(a)s"'
worker_tmp_dir = '/dev/shm'
os.environ.update(environment)
# The services read their own options from here.
sys.argv = [name] + arguments


def post_worker_init(worker):
    """What the imports made stays: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20000, 20, 20)
