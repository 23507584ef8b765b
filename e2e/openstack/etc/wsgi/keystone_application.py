"""Keystone's application, behind what an authentication module of a web server would do. The application's module is new in 2025.1."""
try:
    from keystone.wsgi.api import application as keystone
except ImportError:
    from keystone.server.wsgi import initialize_public_application
    keystone = initialize_public_application()

# As mod_auth_openidc describes somebody who has logged in. Whoever asks is this person: it is Keystone's part that is tested.
PERSON = {'REMOTE_USER': 'operator@staff.example', 'HTTP_OIDC_ISS': 'https://staff.example', 'HTTP_OIDC_GROUPS': 'operators'}


def application(environment, start_response):
    path = environment.get('PATH_INFO', '')
    if path.startswith('/v3/OS-FEDERATION/identity_providers/') and path.endswith('/auth'):
        environment = {**environment, **PERSON}
    return keystone(environment, start_response)
