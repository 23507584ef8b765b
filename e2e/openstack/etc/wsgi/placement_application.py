"""Placement's application. The module is new in 2025.1."""
try:
    from placement.wsgi.api import application
except ImportError:
    from placement.wsgi import init_application
    application = init_application()
