import type { Problem } from '../../errors.ts';
import { SERVER_KEYS } from './config-schema.ts';
import { type DroppedKey, formatPlace } from './layers.ts';
import { formatKeys } from './permitted-keys.ts';

/**
 * What SkyPilot would say about dropped keys: it ignores those of a client with one warning, and rejects a task with a key that
 * it may not set. Keys whose loss changes nothing are not mentioned.
 */
export function droppedProblems(dropped: readonly DroppedKey[]): Problem[] {
  const client = dropped.filter(({ reason }) => reason === 'server' || reason === 'around');
  const [what, verb] = client.length === 1 ? ['key', 'is'] : ['keys', 'are'];
  const named = client.map(({ key, place }) => `${key} (${formatPlace(place)})`).join(', ');
  const message = `${client.length} ${what} that only the server may set ${verb} ignored: ${named}; only the server may set ${formatKeys(SERVER_KEYS)}`;
  return [
    ...(client.length === 0 ? [] : [{ severity: 'warning', message } as const]),
    ...dropped
      .filter(({ reason }) => reason === 'task')
      .map(
        ({ key, place: { origin }, message: why }): Problem => ({
          severity: 'error',
          origin,
          message: `${key}: ${why}`,
        }),
      ),
  ];
}
