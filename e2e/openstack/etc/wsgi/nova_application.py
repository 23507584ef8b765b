"""Nova's application. The module is new in 2025.1; before, eventlet would take over the threads of this server."""
import os

try:
    from nova.wsgi.osapi_compute import application
except ImportError:
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = '1'
    from nova.api.openstack.compute.wsgi import init_application
    application = init_application()
