/** Reviews by a running service over HTTP instead of configured policies. */
import { isDeepStrictEqual } from 'node:util';
import { boundedFetch } from '../../client/bounded-fetch.ts';
import type { ReceivedRequest } from '../../skypilot/request/wire.ts';
import { originalOf, type Review, refusedOutcome, reviewOf } from '../../skypilot/review.ts';
import { SecretValues } from '../../skypilot/secrets.ts';
import { pemOf } from '../common/endpoint.ts';
import { UsageError } from '../common/output.ts';
import type { Reviewer } from './review-output.ts';
import { type Answered, answerOf, type Login, netrcLogin, shownUrl } from './service-call.ts';

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
