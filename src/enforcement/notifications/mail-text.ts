/** What a mail says of an event about budgets, in plain text. */
import { z } from 'zod';
import { cut, onOneLine } from '../../base/visible-text.ts';
import { PREFIX } from './events.ts';

/** Texts in an event are bounded, and come from users: whatever they hold, each stays on its line. */
const text = z.string().transform(onOneLine);
const common = {
  // A part of Message-ID.
  id: z.string().regex(/^[\w-]{1,100}$/),
  source: text,
  time: text,
};
const owner = {
  project: z.object({ id: text }),
  user: z.object({ id: text }).nullable(),
};
const step = z.object({ at: text, by: text, reason: text.nullish() });
const amount = { amount: text, until: text };

const thresholdEvent = z.object({
  ...common,
  type: z.literal(`${PREFIX}budget.threshold`),
  data: z.object({
    ...owner,
    threshold: z.number(),
    budget: z.object({ from: text, until: text, amount: text, taken: text, left: text }),
    cause: text,
    changed_by: text,
    request_id: text.nullable(),
  }),
});
const requestEvent = z.object({
  ...common,
  type: z.literal(`${PREFIX}budget.request`),
  data: z.object({
    ...{ ...owner, ...amount, request: text, state: text, reason: text, asked: step },
    endorsed: step.nullable(),
    settled: step.nullable(),
    granted: z.object(amount).nullable(),
  }),
});
const mailedEvent = z.discriminatedUnion('type', [thresholdEvent, requestEvent]);
type MailedEvent = z.infer<typeof mailedEvent>;

export interface MailText {
  /** Of the event. */
  readonly id: string;
  readonly time: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
}

const LONGEST_SUBJECT = 200;
const LONGEST_ID = 64;

const STATES: ReadonlyMap<string, string> = new Map([
  ['requested', 'new'],
  ['changed', 'granted, but not as asked'],
]);
const OPEN: ReadonlySet<string> = new Set(['requested', 'endorsed']);

/** Of the body of a message in the outbox. @throws if it is no event about budgets */
export function mailOf(body: string): MailText {
  const event = eventIn(body);
  const [subject, lines] =
    event.type === `${PREFIX}budget.threshold` ? thresholdText(event.data) : requestText(event.data);
  const { id, source, time } = event;
  const facts = lines.map(([name, ...said]) => `${`${name}:`.padEnd(10)}${said.join('')}`);
  const foot = ['-- ', `Sent by blazar-enforcement, ${source}: event ${id}, ${time}`];
  return {
    ...{ id, time },
    // A name that looks like an encoded word (RFC 2047) would be decoded.
    subject: cut(subject, LONGEST_SUBJECT).replaceAll('=?', '= ?'),
    text: `${[`${subject}.`, '', ...facts, '', ...foot].join('\n')}\n`,
  };
}

function eventIn(body: string): MailedEvent {
  const parsed = mailedEvent.safeParse(JSON.parse(body));
  if (!parsed.success) {
    throw new Error('expected an event about budgets');
  }
  return parsed.data;
}

/** A name, and what is said in parts. */
type Line = readonly string[];

function thresholdText(data: z.infer<typeof thresholdEvent>['data']): [string, Line[]] {
  const { threshold, budget, cause, changed_by, request_id } = data;
  return [
    `${threshold} % of the budget of ${ownerOf(data)} is taken`,
    [
      ['Taken', `${budget.taken} of ${budget.amount} unit-hours`],
      ['Left', `${budget.left} unit-hours`],
      ['Valid', `from ${budget.from} until ${budget.until}`],
      ['Cause', `${cause}, by ${changed_by}`, request_id === null ? '' : `, ${request_id}`],
    ],
  ];
}

function requestText(data: z.infer<typeof requestEvent>['data']): [string, Line[]] {
  const { request, state, reason, asked, endorsed, settled, granted } = data;
  const taken = (name: string, found: z.infer<typeof step> | null): Line[] =>
    found === null ? [] : [[name, `${found.at}, by ${found.by}`, found.reason ? `: ${found.reason}` : '']];
  return [
    `Budget request ${request} of ${ownerOf(data)}: ${STATES.get(state) ?? state}`,
    [
      ['Wanted', `${data.amount} unit-hours until ${data.until}`],
      ['Reason', reason],
      ...taken('Asked', asked),
      ...taken('Endorsed', endorsed),
      ...taken('Settled', settled),
      ...(granted === null ? [] : [['Granted', `${granted.amount} unit-hours until ${granted.until}`]]),
      ...(OPEN.has(state)
        ? [['Answer', `blazar-enforcement budget grant ${request}, or budget refuse ${request}`]]
        : []),
    ],
  ];
}

function ownerOf({ project, user }: MailedEvent['data']): string {
  const projectId = cut(project.id, LONGEST_ID);
  return user === null ? `project ${projectId}` : `user ${cut(user.id, LONGEST_ID)} in project ${projectId}`;
}
