/** The services of a policy in a thread: they forward to the main thread by messages. */

import type { Logger } from '../../../base/logger.ts';
import type { ObservedRule, RuleObserver } from '../../../filter/rule-observer.ts';
import type { HttpObserver } from '../../../http/contract.ts';
import type { FromThread } from './thread-messages.ts';

type Send = (message: FromThread) => void;

/** Limits the log of a policy that logs in an endless loop: lines in a burst … */
const MAX_LINES = 500;
/** … and lines per second after that. */
const LINES_PER_SECOND = 100;
/** Maximum length of a line, in characters. */
const MAX_LINE = 16_384;

/** Forwards log lines to the log of the process, up to the limit. */
export function forwardingLogger(send: Send, now: () => number = () => performance.now()): Logger {
  let room = MAX_LINES;
  let since = now();
  let dropped = 0;
  const write = (level: 'debug' | 'info' | 'warn' | 'error') =>
    ((...line: unknown[]) => {
      const at = now();
      room = Math.min(MAX_LINES, room + ((at - since) / 1000) * LINES_PER_SECOND);
      since = at;
      if (room < 1) {
        dropped += 1;
        return;
      }
      room -= 1;
      if (dropped > 0) {
        send({
          kind: 'logged',
          level: 'warn',
          fields: { lines: dropped },
          message: 'log lines were dropped',
        });
        dropped = 0;
      }
      send({ kind: 'logged', level, ...plainLine(line) });
    }) as Logger['info'];
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** A log line as plain data: its fields, if they can be written as JSON, and its message. */
function plainLine([first, ...rest]: unknown[]): { fields: Record<string, unknown>; message?: string } {
  const fields = typeof first === 'object' && first !== null ? plainFields(first) : {};
  const texts = (typeof first === 'object' ? rest : [first, ...rest]).filter((text) => text !== undefined);
  const message = texts.map(String).join(' ').slice(0, MAX_LINE);
  return message === '' ? { fields } : { fields, message };
}

function plainFields(fields: object): Record<string, unknown> {
  if (fields instanceof Error) {
    return { error: fields.message.slice(0, MAX_LINE) };
  }
  try {
    const text = JSON.stringify(fields, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value instanceof Error ? value.message : value,
    );
    return text.length > MAX_LINE ? { fields: `${text.slice(0, MAX_LINE)}…` } : JSON.parse(text);
  } catch {
    return { fields: 'cannot be written as JSON' };
  }
}

/** Counts the policy's HTTP calls in the metrics of the process. */
export function forwardingObserver(send: Send): HttpObserver {
  return {
    called: (origin, outcome, seconds) => send({ kind: 'called', origin, outcome, seconds }),
    breakerChanged: (origin, state) => send({ kind: 'breaker', origin, state }),
  };
}

/** Tells what rules say to the observer of the main thread; not why. */
export function forwardingRules(send: Send): RuleObserver {
  const plain = ({ name, audit, place: { file, line } }: ObservedRule) => ({
    ...{ name, audit },
    place: { file, line },
  });
  return {
    rulesRead: (rules) => send({ kind: 'rules-read', read: rules.map(plain) }),
    ruleJudged: (rule, said) => send({ kind: 'rule-judged', rule: plain(rule), said }),
  };
}
