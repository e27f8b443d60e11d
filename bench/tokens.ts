/** The tokens for a service that requires them, and a Keystone that validates them. */
import type { RequestListener } from 'node:http';

/** Of equal length, like Keystone's Fernet tokens. */
export const FIXED_TOKEN = `fixed-${'f'.repeat(177)}`;
export const KEYSTONE_TOKEN = `gAAAAA${'k'.repeat(177)}`;
const OWN_TOKEN = `gAAAAA${'o'.repeat(177)}`;
const LIFETIME_MS = 86_400_000;

/** Responds like Keystone 22 about a service user. */
export const answerAsKeystone: RequestListener = (request, response) => {
  request.resume();
  const token = request.headers['x-subject-token'] ?? OWN_TOKEN;
  const now = Date.now();
  const named = (id: string, name: string) => ({ id, name, domain: { id: 'default', name: 'Default' } });
  const body = JSON.stringify({
    token: {
      methods: ['password'],
      user: named('0bf623e96aac4390bed2c2bccb576dd2', 'blazar'),
      project: named('811e19ed9baf46d3bd7f60b323bae313', 'service'),
      roles: ['reader', 'member', 'manager', 'admin', 'service'].map((name) => ({ id: name, name })),
      issued_at: new Date(now).toISOString(),
      expires_at: new Date(now + LIFETIME_MS).toISOString(),
      audit_ids: ['AAAAAAAAAAAAAAAAAAAAAA'],
    },
  });
  response.writeHead(request.method === 'POST' ? 201 : 200, {
    'Content-Type': 'application/json',
    'X-Subject-Token': token,
  });
  response.end(body);
};
