import { type ComponentChildren, createContext, type RenderableProps } from 'preact';
import { useContext } from 'preact/hooks';
import type { DecisionOutcome } from '../../../decisions/record.ts';
import { nameText } from '../../../filter/account-limits.ts';
import type { Named } from '../../../filter/verdict.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { Generation } from '../../configuration/generation.ts';
import { type Caller, visibleProjects } from '../../users/caller.ts';
import { projectPath } from '../page.ts';
import { shownDate } from './time-scale.ts';

/** A column: its heading, the class of its cells, and the content of a cell. */
export type Column<Row> = readonly [
  head: string,
  look: string | undefined,
  cell: (row: Row) => ComponentChildren,
];

export function column<Row>(...parts: Column<Row>): Column<Row> {
  return parts;
}

export interface TableProps<Row> {
  /** The caption, which screen readers read first. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** The index of the column that names the rows; -1 = none. Default: 0. */
  readonly named?: number;
  readonly rowProps?: (row: Row) => { readonly 'data-key'?: string; readonly class?: string | undefined };
  /** Whether its height is limited to the screen. */
  readonly isLong?: boolean;
  /** A sentence to show instead if there are no rows. Default: the table is shown without rows. */
  readonly empty?: string;
}

/** Scrolls if there is no room; focusable, so that the keyboard can scroll it. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, named = 0, rowProps, isLong = false, empty } = props;
  return rows.length === 0 && empty !== undefined ? (
    <p>{empty}</p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse.
    <section class={isLong ? 'scrolls long' : 'scrolls'} aria-label={label} tabIndex={0}>
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            {columns.map(([head]) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr {...rowProps?.(row)}>
              {columns.map(([, look, cell], index) =>
                index === named ? (
                  <th scope="row" class={look}>
                    {cell(row)}
                  </th>
                ) : (
                  <td class={look}>{cell(row)}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A user's text below another one; renders nothing for `null`. */
export function Small({ text, look }: { readonly text: string | null; readonly look?: string }) {
  return text === null ? null : (
    <small class={look}>
      <Text>{text}</Text>
    </small>
  );
}

/** The name of a filter, with a mark for audit mode. */
export function FilterName({ filter, audit }: { readonly filter: string; readonly audit: boolean }) {
  return (
    <>
      <Text>{filter}</Text>
      {audit && <small>audit: tried, not enforced</small>}
    </>
  );
}

/** `done`: success. `error` is announced to screen readers at once. */
export function Message({ kind, children }: RenderableProps<{ kind: 'done' | 'notice' | 'error' }>) {
  return (
    <p class={kind} role={kind === 'error' ? 'alert' : 'status'}>
      {children}
    </p>
  );
}

/** A part that scripts update after changes. Must not contain forms. `name`: unique on the page. */
export function LivePart({ name, children }: RenderableProps<{ readonly name: string }>) {
  return <div data-live={name}>{children}</div>;
}

interface SectionProps {
  /** Unique on the page. */
  readonly id: string;
  readonly title: ComponentChildren;
  /** Whether it is a live part. Default: false. */
  readonly isLive?: boolean;
  readonly children: ComponentChildren;
}

export function Section({ id, title, isLive = false, children }: SectionProps) {
  return (
    <section aria-labelledby={id} data-live={isLive ? id : undefined}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** A name and a value; `false` is omitted. */
export type Fact = readonly [name: string, value: ComponentChildren] | false;

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </>
          ),
      )}
    </dl>
  );
}

/** A user's text or an id, in code style, as a link. */
export function IdLink({ href, id }: { readonly href: string; readonly id: string }) {
  return (
    <a class="id" href={href}>
      <Text>{id}</Text>
    </a>
  );
}

/** Signs beside the word of the outcome, so that it is readable without colours. */
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

/** In UTC; scripts add the time in the viewer's zone. */
export function Time({ at }: { readonly at: Instant }) {
  return <time dateTime={formatInstant(at)}>{shownDate(at)}</time>;
}

/** A period of validity. */
export function Span({ from, until }: { readonly from: bigint; readonly until: bigint }) {
  return (
    <>
      <Time at={from * MICROSECONDS_PER_SECOND} /> to
      <br />
      <Time at={until * MICROSECONDS_PER_SECOND} />
    </>
  );
}

export function Resources({ resources }: { readonly resources: ReadonlyMap<string, number> }) {
  return (
    <>
      {[...resources].map(([type, count]) => (
        <div>
          {count} × <Text>{type}</Text>
        </div>
      ))}
    </>
  );
}

export function LeaseName({ name }: { readonly name: string | null }) {
  return name === null || name === '' ? <span class="none">no name</span> : <Text>{name}</Text>;
}

/** Characters that are invisible or change how other text looks. In a page, line breaks and tabs are spaces. */
const INVISIBLE = /[^\P{Cc}\t\n\r]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** The text, isolated from the writing direction around it, with every invisible character named. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>;
}

/** The text with every invisible character named: `[U+202E]`. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`;
  });
}

type Kind = 'project' | 'user';

type NameOf = (kind: Kind, id: string) => Named | undefined;

const AccountNames = createContext<NameOf>(() => undefined);

export function Account({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  return <NamedId id={id} named={useContext(AccountNames)(kind, id)} />;
}

export function NamedId({ id, named }: { readonly id: string; readonly named: Named | undefined }) {
  return named === undefined ? (
    <Text>{id}</Text>
  ) : (
    <>
      <Text>{nameText(named)}</Text> <Small text={id} look="id" />
    </>
  );
}

/** Names from Keystone, and of own projects. Members see no others: a URL may contain any id. */
export function nameOfFor({ enforcement }: Generation, caller: Caller): NameOf {
  const visible = visibleProjects(caller);
  const own = new Map(
    caller.memberships.flatMap(({ projectId, name, domain = '' }) =>
      name === undefined ? [] : [[projectId, { name, domain }] as const],
    ),
  );
  return (kind, id) =>
    kind === 'project' && visible?.includes(id) === false
      ? undefined
      : (enforcement.names?.known({ project_id: id, user_id: id })[kind] ??
        (kind === 'project' ? own.get(id) : undefined));
}

export function WithNames({ nameOf, children }: { nameOf: NameOf; children: ComponentChildren }) {
  return <AccountNames.Provider value={nameOf}>{children}</AccountNames.Provider>;
}

export function BudgetOwner({ userId, project = 'Project' }: { userId: string | null; project?: string }) {
  return userId === null ? project : <Account kind="user" id={userId} />;
}

export function ProjectLink({ id }: { readonly id: string }) {
  return (
    <a href={projectPath(id)}>
      <Account kind="project" id={id} />
    </a>
  );
}

/** The heading of a list that is filtered by project. `id`: empty = not filtered. */
export function OfProject({ id }: { readonly id: string }) {
  return id === '' ? null : (
    <p>
      Of the project <ProjectLink id={id} />
    </p>
  );
}
