"""Octavia's application. The module is new in 2025.1."""
try:
    from octavia.wsgi.api import application
except ImportError:
    from octavia.api.app import setup_app
    application = setup_app()
