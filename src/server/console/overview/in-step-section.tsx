import type { ComponentChildren } from 'preact';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { Message } from '../message.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';
import type { InStep } from './in-step.ts';

interface InStepProps {
  readonly state: InStep | 'none' | 'away';
  /** How often the ledger is compared with Blazar, in seconds; `undefined` = it is not. */
  readonly every: number | undefined;
}

/** Several comparisons that did not come. */
const LATE = 5n;

export function InStepSection({ state, every }: InStepProps) {
  return (
    <section aria-labelledby="in-step">
      <h2 id="in-step">Ledger and Blazar</h2>
      {state === 'none' ? (
        <p>No filter needs a ledger.</p>
      ) : state === 'away' ? (
        <Message kind="error">The ledger does not answer: leases that need it are refused.</Message>
      ) : (
        <Facts {...state} every={every} />
      )}
    </section>
  );
}

function Facts({
  suspended,
  followedAt,
  holder,
  now,
  outbox,
  every,
}: InStep & { readonly every: number | undefined }) {
  const age = followedAt === undefined ? undefined : (now - followedAt) / MICROSECONDS_PER_SECOND;
  const isLate = every !== undefined && (age === undefined || age > LATE * BigInt(Math.ceil(every)));
  return (
    <>
      {suspended !== undefined && (
        <Message kind="error">
          Nothing is granted: <Text>{suspended}</Text>. Run <code>blazar-enforcement ledger reconcile</code>{' '}
          with the leases that Blazar has.
        </Message>
      )}
      <ul class="tiles">
        <Tile what="Ledger" look={suspended === undefined ? undefined : 'bad'}>
          {suspended === undefined ? 'grants leases' : 'suspended'}
        </Tile>
        <Tile what="Compared with Blazar" look={isLate ? 'care' : undefined}>
          {every === undefined
            ? 'not configured'
            : age === undefined || followedAt === undefined
              ? 'not yet'
              : `${duration(age)} ago`}
          {followedAt !== undefined && (
            <small>
              {shownDate(followedAt - (followedAt % MICROSECONDS_PER_SECOND))} UTC
              {holder !== undefined && (
                <>
                  , by <Text>{holder}</Text>
                </>
              )}
            </small>
          )}
        </Tile>
        <Tile what="Messages that wait" look={outbox.oldestSeconds > 600 ? 'care' : undefined}>
          {outbox.waiting}
          {outbox.waiting > 0 && (
            <small>the oldest for {duration(BigInt(Math.floor(outbox.oldestSeconds)))}</small>
          )}
        </Tile>
        <Tile what="Dead messages" look={outbox.dead > 0 ? 'bad' : undefined}>
          {outbox.dead}
          {outbox.dead > 0 && (
            <small>
              see <code>blazar-enforcement outbox list</code>
            </small>
          )}
        </Tile>
      </ul>
    </>
  );
}

interface TileProps {
  readonly what: string;
  readonly look: 'care' | 'bad' | undefined;
  readonly children: ComponentChildren;
}

function Tile({ what, look, children }: TileProps) {
  return (
    <li class={look}>
      {what}: <b>{children}</b>
    </li>
  );
}

/** `45 s`, `12 min`, `3 h`, `2 days` */
export function duration(seconds: bigint): string {
  const whole = seconds < 0n ? 0n : seconds;
  if (whole < 120n) {
    return `${whole} s`;
  }
  if (whole < 7200n) {
    return `${whole / 60n} min`;
  }
  return whole < 172_800n ? `${whole / 3600n} h` : `${whole / 86_400n} days`;
}
