"""Neutron's application. Before 2025.1 it is made by its own server, whose monkey patching nobody needs here."""
try:
    from neutron.wsgi.api import application
except ImportError:
    from neutron import server
    try:
        from neutron.server import api_eventlet
        application = server.boot_server(api_eventlet.eventlet_api_server)
    except ImportError:
        application = server.get_application()
