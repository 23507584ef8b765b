"""Keystone's application. The module is new in 2025.1."""
try:
    from keystone.wsgi.api import application
except ImportError:
    from keystone.server.wsgi import initialize_public_application
    application = initialize_public_application()
