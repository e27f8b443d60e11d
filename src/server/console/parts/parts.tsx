import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { DecisionOutcome } from '../../../decisions/record.ts';
import { nameText } from '../../../filter/account-limits.ts';
import type { Named } from '../../../filter/call.ts';
import type { Generation } from '../../configuration/generation.ts';
import type { Caller } from '../../users/caller.ts';
import { projectPath } from '../page.ts';
import { shownSecond } from './time-scale.ts';

interface TableProps {
  /** What it is: its caption, which screen readers read first. */
  readonly label: string;
  readonly head: readonly string[];
  /** Whether its height is limited to the screen. */
  readonly isLong?: boolean;
  readonly children: ComponentChildren;
}

/** It scrolls when there is no room, and can be focused so that the keyboard can scroll it. */
export function Table({ label, head, isLong = false, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse.
    <section class={isLong ? 'scrolls long' : 'scrolls'} aria-label={label} tabIndex={0}>
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            {head.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

interface MessageProps {
  /** `done`: it worked. `error` is read to screen readers at once. */
  readonly kind: 'done' | 'notice' | 'error';
  readonly children: ComponentChildren;
}

export function Message({ kind, children }: MessageProps) {
  return (
    <p class={kind} role={kind === 'error' ? 'alert' : 'status'}>
      {children}
    </p>
  );
}

interface LivePartProps {
  /** Unlike that of any other part of the page. */
  readonly name: string;
  readonly children: ComponentChildren;
}

/** A part of a page that scripts replace when something has happened. Without them it stays as it was loaded. Forms do not belong into it. */
export function LivePart({ name, children }: LivePartProps) {
  return <div data-live={name}>{children}</div>;
}

/** Signs beside the outcome, which is the word of the decision log and the metrics, so that nobody depends on colours. */
const SIGNS: Readonly<Record<DecisionOutcome, string>> = {
  allowed: '✓',
  changed: '✎',
  rejected: '✗',
  failed: '!',
  'allowed-on-error': '!',
  exempt: '–',
  audit: '?',
  bypassed: '↷',
};

export function Outcome({ outcome }: { readonly outcome: DecisionOutcome }) {
  return (
    <span class={`outcome ${outcome}`}>
      <span aria-hidden="true">{SIGNS[outcome]}</span> {outcome}
    </span>
  );
}

/** `0.041 ms`, `1250 ms` */
export function Milliseconds({ value }: { readonly value: number }) {
  return <span class="number">{`${value < 100 ? value.toFixed(3) : Math.round(value)} ms`}</span>;
}

interface SpanProps {
  /** Seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
  readonly children?: ComponentChildren;
}

export function SpanCell({ from, until, children }: SpanProps) {
  return (
    <td class="time">
      {shownSecond(from)} to
      <br />
      {shownSecond(until)}
      {children}
    </td>
  );
}

/** The name of a lease, which may be none. */
export function LeaseName({ name }: { readonly name: string | null }) {
  return name === null || name === '' ? <span class="none">no name</span> : <Text>{name}</Text>;
}

/** Characters that are invisible or change how other text looks. In a page, line breaks and tabs are spaces. */
const INVISIBLE = /[^\P{Cc}\t\n\r]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** The text, isolated from the writing direction around it, with every invisible character named. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>;
}

/** With every invisible character named. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, nameOf);
}

/** `[U+202E]` */
function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`;
}

type Kind = 'project' | 'user';

/** The names that are known for the ids of the page. */
export type NameOf = (kind: Kind, id: string) => Named | undefined;

const AccountNames = createContext<NameOf>(() => undefined);

export function Account({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  return <NamedId id={id} named={useContext(AccountNames)(kind, id)} />;
}

export function NamedId({ id, named }: { readonly id: string; readonly named: Named | undefined }) {
  return named === undefined ? (
    <Text>{id}</Text>
  ) : (
    <>
      <Text>{nameText(named)}</Text>{' '}
      <small class="id">
        <Text>{id}</Text>
      </small>
    </>
  );
}

/** The names that are known for accounts: Keystone's, and those of the person's own projects. */
export function nameOfFor({ enforcement }: Generation, { memberships }: Caller): NameOf {
  const own = new Map(
    memberships.flatMap(({ projectId, name, domain = '' }) =>
      name === undefined ? [] : [[projectId, { name, domain }] as const],
    ),
  );
  return (kind, id) =>
    enforcement.names?.known({ project_id: id, user_id: id })[kind] ??
    (kind === 'project' ? own.get(id) : undefined);
}

/** In milliseconds: names are a nicety, no page waits long for them. */
const NAMES_PATIENCE = 500;

export async function learnNames(
  { enforcement }: Generation,
  projects: readonly string[],
  users: readonly string[],
): Promise<void> {
  await enforcement.names?.learn(projects, users, NAMES_PATIENCE);
}

export function WithNames({
  nameOf,
  children,
}: {
  readonly nameOf: NameOf;
  readonly children: ComponentChildren;
}) {
  return <AccountNames.Provider value={nameOf}>{children}</AccountNames.Provider>;
}

export function Whose({
  userId,
  project = 'Project',
}: {
  readonly userId: string | null;
  readonly project?: string;
}) {
  return userId === null ? project : <Account kind="user" id={userId} />;
}

export function ProjectLink({ id }: { readonly id: string }) {
  return (
    <a href={projectPath(id)}>
      <Account kind="project" id={id} />
    </a>
  );
}
