/** What is counted about tokens of Keystone. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { TokenAnswer } from '../../openstack/token-validation.ts';
import type { GateObserver, TokenOutcome } from '../authentication/keystone-gates.ts';

type Validated = Parameters<GateObserver['tokenValidated']>[0];

/** Read when the metrics are. */
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

export class TokenMetrics implements GateObserver {
  readonly #validations: Counter<'outcome'>;
  /** Added up here and told when the metrics are read: `inc` would cost every request as much as finding its token. */
  readonly #answers = new Map<string, number>();

  /** `prefix` begins the names. */
  constructor(registry: Registry, prefix: string, sizes: TokenSizes | undefined) {
    const registers = [registry];
    this.#validations = new Counter({
      name: `${prefix}keystone_validations_total`,
      help: 'Tokens that Keystone was asked about: valid, invalid, or failed (no usable answer).',
      labelNames: ['outcome'],
      registers,
    });
    const answers = this.#answers;
    new Counter({
      name: `${prefix}keystone_token_requests_total`,
      help: 'Requests with a token of Keystone: allowed, forbidden (no role), invalid, unavailable; and what that rests on.',
      labelNames: ['outcome', 'from'],
      registers,
      collect() {
        for (const [answer, count] of answers) {
          const [outcome = '', from = ''] = answer.split(' ');
          this.inc({ outcome, from }, count);
        }
        answers.clear();
      },
    });
    new Gauge({
      name: `${prefix}keystone_tokens_known`,
      help: 'Tokens in memory: valid ones, and ones that Keystone does not know.',
      labelNames: ['kind'],
      registers,
      collect() {
        const { valid = 0, unknown = 0 } = sizes?.() ?? {};
        this.set({ kind: 'valid' }, valid);
        this.set({ kind: 'unknown' }, unknown);
      },
    });
    new Gauge({
      name: `${prefix}keystone_validations_under_way`,
      help: 'Tokens that Keystone is being asked about, or that wait in the queue.',
      registers,
      collect() {
        this.set(sizes?.().underWay ?? 0);
      },
    });
    for (const outcome of VALIDATED) {
      this.#validations.inc({ outcome }, 0);
    }
    for (const answer of ANSWERS) {
      answers.set(answer, 0);
    }
  }

  tokenValidated(outcome: Validated): void {
    this.#validations.inc({ outcome });
  }

  readonly countToken = (outcome: TokenOutcome, from: TokenAnswer['from']): void => {
    const answer = `${outcome} ${from}`;
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1);
  };
}
