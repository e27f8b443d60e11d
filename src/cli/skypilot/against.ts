/**
 * Reviews by a running service over HTTP instead of configured policies: one request each, as by
 * `RestfulAdminPolicy` of SkyPilot 0.13.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { jsonIn } from '../../base/yaml/tree.ts';
import { type BoundedFetch, boundedFetch, EndpointError } from '../../client/bounded-fetch.ts';
import { readTextFile } from '../../config/read-file.ts';
import {
  decodeRequest,
  encodeRequest,
  InvalidBodyError,
  type ReceivedRequest,
} from '../../skypilot/request/wire.ts';
import { originalOf, type Review, refusedOutcome, reviewOf, type State } from '../../skypilot/review.ts';
import { SecretValues } from '../../skypilot/secrets.ts';
import { pemOf } from '../common/endpoint.ts';
import { UsageError } from '../common/output.ts';
import type { Reviewer } from './review-output.ts';

/** SkyPilot's timeout, in seconds. */
const SKYPILOT_TIMEOUT = 30;
/** Two members of one megabyte, escaped twice. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const HIDDEN = '****';
/** Shorter parts of an address are unlikely to be secret, and hiding them would hide words. */
const MIN_SECRET = 4;

/** `timeout`: per request, in seconds; default: SkyPilot's. @throws UsageError */
export function remoteReviewer(
  address: string,
  caFile: string | undefined,
  timeout = SKYPILOT_TIMEOUT,
): Reviewer {
  const url = serviceUrl(address);
  const login = netrcLogin(url.hostname) ?? loginOf(url);
  const secrets = [
    ...[url.password, ...url.searchParams.values()].flatMap((text) => [text, decoded(text)]),
    login?.password ?? '',
  ].filter(({ length }) => length >= MIN_SECRET);
  const client = boundedFetch({
    timeout,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    ca: pemOf(caFile),
  });
  return {
    maxBytes: MAX_BODY_BYTES,
    // SkyPilot reads the header of a pipeline itself; the service does not receive it.
    validation: 'warning',
    async review(request) {
      const started = performance.now();
      const result = await answerOf(client, url, login, request);
      const hide = (text: string) =>
        [...secrets, ...secrets.map(encodeURIComponent)].reduce(
          (shown, secret) => shown.replaceAll(secret, HIDDEN),
          SecretValues.of(request.task.value, request.skypilotConfig.value).hideIn(text),
        );
      return reviewed(request, result, {
        policy: shownUrl(url),
        milliseconds: performance.now() - started,
        hide,
      });
    },
    close: () => client.close(),
  };
}

function reviewed(
  request: ReceivedRequest,
  answered: Answered,
  { policy, milliseconds, hide }: { policy: string; milliseconds: number; hide: (text: string) => string },
): Review {
  const original = originalOf(request);
  const outcome = { policy, allowed: true, message: null, failed: false, audit: false, milliseconds };
  if ('message' in answered) {
    const refusal = { message: hide(answered.message), failed: answered.failed };
    const outcomes = [refusedOutcome({ ...outcome, changed: false }, refusal)];
    return { ...reviewOf(original, { ...refusal, policy }, outcomes, []), mismatches: [] };
  }
  const changed = !isDeepStrictEqual(answered, original);
  const verdict = { changed, answer: '' };
  return { ...reviewOf(answered, verdict, [{ ...outcome, changed }], []), mismatches: [] };
}

function serviceUrl(address: string): URL {
  // The address is not repeated: it may contain a token.
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new UsageError(
      '--against: expected the address in admin_policy, such as https://policy.example.org/skypilot/admin-policy',
    );
  }
  return url;
}

function loginOf({ username, password }: URL): Login | undefined {
  return username === '' && password === ''
    ? undefined
    : { name: decoded(username), password: decoded(password) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** In characters. */
const MAX_REASON = 8000;
const MAX_SHOWN = 200;
const MAX_REDIRECTS = 5;

/** The service's response is unusable; the message is for the user. */
class NoAnswer extends Error {}

type Answered = State | { readonly message: string; readonly failed: boolean };

async function answerOf(
  client: BoundedFetch,
  url: URL,
  login: Login | undefined,
  request: ReceivedRequest,
): Promise<Answered> {
  const body = encodeRequest({
    ...request,
    task: request.task.toString(),
    skypilotConfig: request.skypilotConfig.toString(),
  });
  try {
    const response = await posted(client, url, login, body);
    const text = await response.text();
    if (response.status === 400) {
      return { message: text.slice(0, MAX_REASON) || 'rejected without a reason', failed: false };
    }
    if (!response.ok) {
      const shown = text.trim().slice(0, MAX_SHOWN);
      throw new NoAnswer(`it answered ${response.status}${shown === '' ? '' : `: ${shown}`}`);
    }
    return decodedAnswer(text);
  } catch (thrown) {
    if (thrown instanceof NoAnswer) {
      return { message: thrown.message, failed: true };
    }
    if (thrown instanceof EndpointError) {
      return { message: plainWords(thrown.message.replace(`${url.origin}: `, '')), failed: true };
    }
    throw thrown;
  }
}

/** SkyPilot resends the body only for 307 and 308. Never sent to other hosts, without TLS or with a token. */
async function posted(
  client: BoundedFetch,
  url: URL,
  login: Login | undefined,
  body: string,
): Promise<Response> {
  const target = new URL(url);
  target.username = '';
  target.password = '';
  target.hash = '';
  const headers = {
    'content-type': 'application/json',
    accept: '*/*',
    ...(login !== undefined && { authorization: `Basic ${basicOf(login)}` }),
  };
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const response = await client.fetch(new Request(target, { method: 'POST', headers, body }));
    const { status } = response;
    const location = response.headers.get('location');
    if (status < 300 || status >= 400 || location === null) {
      return response;
    }
    if (!URL.canParse(location, target)) {
      throw new NoAnswer(`it answered ${status}, a redirect to an address that cannot be read`);
    }
    const next = new URL(location, target);
    const where = `it answered ${status}, a redirect to ${shownUrl(next)}`;
    if (status !== 307 && status !== 308) {
      throw new NoAnswer(`${where}: SkyPilot would follow it without the request; name that address instead`);
    }
    if (next.hostname !== target.hostname || (target.protocol === 'https:' && next.protocol !== 'https:')) {
      throw new NoAnswer(`${where}: the request is not sent to another host, or without TLS`);
    }
    if (login !== undefined || url.search !== '') {
      throw new NoAnswer(`${where}: it is not followed with a token; name that address instead`);
    }
    target.href = next.href;
    target.username = '';
    target.password = '';
  }
  throw new NoAnswer(`it redirected more than ${MAX_REDIRECTS} times`);
}

/** A JSON string that contains JSON. */
function decodedAnswer(text: string): Answered {
  const outer = jsonIn(text);
  if (outer === undefined) {
    throw new NoAnswer('its answer is not JSON');
  }
  if (typeof outer !== 'string') {
    throw new NoAnswer('its answer is not a JSON string that contains JSON: SkyPilot decodes it twice');
  }
  try {
    return originalOf(decodeRequest(outer));
  } catch (thrown) {
    if (thrown instanceof InvalidBodyError) {
      throw new NoAnswer(`its answer cannot be used: ${thrown.message}`);
    }
    throw thrown;
  }
}

function basicOf({ name, password }: Login): string {
  const text = `${name}:${password}`;
  return Buffer.from(text, /^[\0-\xff]*$/.test(text) ? 'latin1' : 'utf8').toString('base64');
}

/** Without name, password and query. */
function shownUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [
    /self-signed certificate|unable to (?:verify|get)/,
    'its certificate is signed by an authority that is not trusted here; name that authority with --ca-file',
  ],
  [/certificate has expired/, 'its certificate has expired'],
  [/certificate is not yet valid/, 'its certificate is not valid yet'],
  [/altnames/, 'its certificate is for another host'],
  [/wrong version number|packet length too long/, 'it does not speak TLS: the address begins with https://'],
  [/certificate required/, 'it requires a client certificate'],
  [/ECONNREFUSED/, 'nothing listens there'],
  [/ENOTFOUND|EAI_AGAIN/, 'there is no such host'],
  [/ECONNRESET|other side closed|socket hang up/, 'it closed the connection without an answer'],
];

function plainWords(reason: string): string {
  return WORDS.find(([pattern]) => pattern.test(reason))?.[1] ?? reason;
}

interface Login {
  readonly name: string;
  readonly password: string;
}

const MAX_NETRC_BYTES = 1_048_576;

/** From `$NETRC`, else `~/.netrc`, else `~/_netrc`. Like SkyPilot's client, ignores a file that it cannot read. */
function netrcLogin(host: string): Login | undefined {
  const named = process.env.NETRC;
  const files = named ? [named] : ['.netrc', '_netrc'].map((name) => join(homedir(), name));
  for (const file of files) {
    try {
      return loginIn(readTextFile(file, MAX_NETRC_BYTES), host);
    } catch {
      // The next one, if any.
    }
  }
  return undefined;
}

/** The entry of the host, otherwise `default`. The last one counts. */
export function loginIn(text: string, host: string): Login | undefined {
  const entries: { readonly of: string | null; login: string; account: string; password: string }[] = [];
  const tokens = tokensOf(text).values();
  const next = () => tokens.next().value ?? '';
  for (const token of tokens) {
    if (token === 'machine' || token === 'default') {
      entries.push({ of: token === 'machine' ? next() : null, login: '', account: '', password: '' });
    } else if (token === 'login' || token === 'user') {
      Object.assign(entries.at(-1) ?? {}, { login: next() });
    } else if (token === 'account' || token === 'password') {
      Object.assign(entries.at(-1) ?? {}, { [token]: next() });
    }
  }
  const entry = entries.findLast(({ of }) => of === host) ?? entries.findLast(({ of }) => of === null);
  return entry && { name: entry.login || entry.account, password: entry.password };
}

/** Words and quoted words. A comment ends with its line, a macro with an empty line. */
function tokensOf(text: string): string[] {
  const withoutMacros = text.replace(/^\s*macdef\b[^\n]*\n(?:[^\n]+\n)*/gm, '');
  return withoutMacros.split('\n').flatMap((line) => {
    const [before = ''] = line.split(/(?:^|\s)#/, 1);
    // A password may begin with `#`.
    const used = /\b(?:password|login|user|account)\s*$/.test(before) ? line : before;
    return [...used.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, word]) =>
      (quoted ?? word ?? '').replace(/\\(.)/g, '$1'),
    );
  });
}
