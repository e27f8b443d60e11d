/** From `name@domain` to an id, for people who type one. Unlike the names of requests it asks at once, and fails where Keystone does. */
import { z } from 'zod';
import type { HttpAnswer } from '../http/contract.ts';
import type { Keystone } from './contract.ts';
import { isPlausible, readRecord } from './identity-records.ts';
import { KeystoneError } from './keystone-error.ts';

const listed = z.array(
  z.object({ id: z.string().min(1), name: z.string(), domain_id: z.string().nullish() }),
);

/**
 * The id of a project or a user: `text` itself if Keystone has such an id, else that of the `name@domain`. `undefined` = there is none.
 * @throws KeystoneError, HttpCallError if Keystone does not tell
 */
export async function accountIdOf(
  keystone: Pick<Keystone, 'getIdentity'>,
  kind: 'project' | 'user',
  text: string,
): Promise<string | undefined> {
  if (isPlausible(text) && !('missing' in (await readRecord(keystone, kind, text)))) {
    return text;
  }
  const at = text.lastIndexOf('@');
  const [name, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || domain === '') {
    return undefined;
  }
  const domainId = await idIn(keystone, `/domains?name=${encodeURIComponent(domain)}`, 'domains', domain);
  const query = `name=${encodeURIComponent(name)}&domain_id=${encodeURIComponent(domainId ?? '')}`;
  return domainId === undefined
    ? undefined
    : idIn(keystone, `/${kind}s?${query}`, `${kind}s`, name, domainId);
}

/** A database that ignores case lists more than what was asked for. */
async function idIn(
  keystone: Pick<Keystone, 'getIdentity'>,
  path: string,
  key: string,
  name: string,
  domainId?: string,
): Promise<string | undefined> {
  const answer = await keystone.getIdentity(path);
  const fitting = entriesOf(answer, key).filter(
    (one) => one.name === name && (domainId === undefined || one.domain_id === domainId),
  );
  if (fitting.length > 1) {
    throw new KeystoneError('unusable-answer', `Keystone has several ${key} of this name; give the id`);
  }
  return fitting[0]?.id;
}

function entriesOf({ status, body }: HttpAnswer, key: string): z.infer<typeof listed> {
  if (status === 403) {
    throw new KeystoneError('forbidden', `the account of [keystone] may not list ${key} (403); give the id`);
  }
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    answer = undefined;
  }
  const parsed = z.object({ [key]: listed }).safeParse(answer);
  const entries = parsed.data?.[key];
  if (status !== 200 || entries === undefined) {
    throw new KeystoneError(
      'unusable-answer',
      `GET /v3/${key}: the answer (${status}) is not that of Keystone`,
    );
  }
  return entries;
}
