"""Barbican's application, as its paste file describes it."""
from paste import deploy

application = deploy.loadapp('config:@VENV@/etc/barbican/barbican-api-paste.ini', name='main', relative_to='/')
