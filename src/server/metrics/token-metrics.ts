/** Metrics of Keystone tokens. */
import type { AuthenticationObserver } from '../authentication/keystone-authenticators.ts';
import type { Instruments } from './instruments.ts';

type Validated = Parameters<AuthenticationObserver['tokenValidated']>[0];

export type TokenSizes = () => {
  readonly valid: number;
  readonly unknown: number;
  readonly underWay: number;
};

const VALIDATED = ['valid', 'invalid', 'failed'] as const satisfies readonly Validated[];

/** Shown from the start. */
const ANSWERS = [
  ...['cache', 'keystone', 'outage'].flatMap((from) => [`allowed ${from}`, `forbidden ${from}`]),
  ...['cache', 'keystone', 'form'].map((from) => `invalid ${from}`),
  ...['busy', 'outage'].map((from) => `unavailable ${from}`),
];

export function tokenMetrics(make: Instruments, sizes: TokenSizes | undefined): AuthenticationObserver {
  /** Added up here until the metrics are read: `inc` would cost as much per request as finding its token. */
  const answers = new Map(ANSWERS.map((answer) => [answer, 0]));
  const validations = make.counter(
    'keystone_validations_total',
    'Tokens that Keystone was asked about: valid, invalid, or failed (no usable answer).',
    { outcome: VALIDATED },
  );
  make.counter(
    'keystone_token_requests_total',
    'Requests with a token of Keystone: allowed, forbidden (no role), invalid, unavailable; and what that rests on.',
    ['outcome', 'from'],
    (counter) => {
      for (const [answer, count] of answers) {
        const [outcome = '', from = ''] = answer.split(' ');
        counter.inc({ outcome, from }, count);
      }
      answers.clear();
    },
  );
  make.gauge(
    'keystone_tokens_known',
    'Tokens in memory: valid ones, and ones that Keystone does not know.',
    ['kind'],
    (gauge) => {
      const { valid = 0, unknown = 0 } = sizes?.() ?? {};
      gauge.set({ kind: 'valid' }, valid);
      gauge.set({ kind: 'unknown' }, unknown);
    },
  );
  make.reading(
    'keystone_validations_under_way',
    'Tokens that Keystone is being asked about, or that wait in the queue.',
    () => sizes?.().underWay ?? 0,
  );
  return {
    tokenValidated: (outcome) => validations.inc({ outcome }),
    countToken: (outcome, from) => {
      const answer = `${outcome} ${from}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    },
  };
}
