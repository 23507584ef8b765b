"""Glance's application. The module is new in 2025.1; before, it reads the files of this list."""
try:
    from glance.wsgi.api import application
except ImportError:
    from glance.common import wsgi_app
    wsgi_app.CONFIG_FILES = ['glance-api.conf']
    application = wsgi_app.init_app()
