/** What Keystone says about a token: the body of `/v3/auth/tokens`. */
import { z } from 'zod';
import type { HttpAnswer } from '../http/contract.ts';
import { KeystoneError } from './keystone-error.ts';

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** Four times as long as Keystone's own limit. */
const name = z.string().max(1020);

/** Users of other identity providers may have a domain without a name. */
const identified = z.object({
  id: z.string().min(1).max(255),
  name,
  domain: z.object({ name: name.nullish() }).nullish(),
});

const tokenAnswer = z.object({
  token: z.object({
    expires_at: instant,
    issued_at: instant,
    user: identified,
    project: identified.nullish(),
    system: z.object({ all: z.boolean().nullish() }).nullish(),
    is_admin_project: z.boolean().nullish(),
    roles: z.array(z.object({ name })).max(1000).nullish(),
    // Not looked at here: it may be long, and few of its entries are asked for.
    catalog: z.custom<readonly unknown[]>(Array.isArray).nullish(),
  }),
});

/** Times are in milliseconds of the epoch, by Keystone's clock. */
export type TokenContent = z.infer<typeof tokenAnswer>['token'];

/** @throws KeystoneError if it is something else, such as the page of a proxy */
export function tokenContent(answer: HttpAnswer, address: string): TokenContent {
  const parsed = tokenAnswer.safeParse(jsonOf(answer.body));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue === undefined || issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`;
    throw new KeystoneError(
      'unusable-answer',
      `${address}: the answer (${answer.status}) is no token of Keystone${where}; check [keystone] auth_url`,
    );
  }
  return parsed.data.token;
}

/** Tokens are ASCII without spaces; no form of them is longer. Nothing else is sent as a header. */
export function isToken(text: string): boolean {
  return text.length <= 8192 && /^[\x21-\x7e]+$/.test(text);
}

/** Whether an error is Keystone's own, and not that of a proxy or another service. */
export function isKeystoneError({ status, body }: HttpAnswer): boolean {
  return z.object({ error: z.object({ code: z.literal(status) }) }).safeParse(jsonOf(body)).success;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
