/** The first page for operators: what is enforced, what is refused, and by which replicas. */
import { withinDeadline } from '../../../base/deadline.ts';
import { formatProblem, type Problem } from '../../../base/errors.ts';
import type { Setting } from '../../../config/resolve.ts';
import { REFUSED } from '../../../decisions/selection.ts';
import { type PresentReplica, REPLICA_LISTED } from '../../../decisions/store/contract.ts';
import { type Configuration, type ConfiguredFilter, sectionOf } from '../../../enforcement/configuration.ts';
import { blazarSection } from '../../../openstack/options.ts';
import type { Generation } from '../../configuration/generation.ts';
import { statusOf } from '../../health.ts';
import { shownValue, Value } from '../configuration.tsx';
import { DecisionTable } from '../decisions/decision-table.tsx';
import { AWAY, findDecisions } from '../decisions/found-decisions.ts';
import { type ConsolePage, type PageRequest, pathWith } from '../page.ts';
import { type Column, column, LivePart, Message, Section, Table, Text } from '../parts/parts.tsx';
import { ClustersSection, clustersNow, InStepSection, inStep } from './ledger-state.tsx';

export const overviewPage: ConsolePage = {
  method: 'GET',
  path: '/',
  action: 'see-service',
  label: 'Overview',
  answer: async (request) => {
    const { generation } = request;
    const [refusals, replicas, state, clusters] = await Promise.all([
      refusalsNow(request),
      replicasNow(generation),
      inStep(generation),
      clustersNow(generation),
    ]);
    return {
      title: 'Overview',
      main: (
        <>
          <State {...request} />
          <Filters {...generation.configuration} />
          <RefusalsSection {...refusals} />
          <ReplicasSection replicas={replicas} />
          {clusters !== undefined && <ClustersSection clusters={clusters} />}
          <InStepSection state={state} every={comparedEvery(generation)} />
        </>
      ),
    };
  },
};

function State({ generation, problems, isDraining }: PageRequest) {
  const { number, configuration } = generation;
  const state = statusOf(generation, problems, isDraining);
  return (
    <LivePart name="state">
      <p class="state">
        <span class={state === 'ready' ? 'outcome allowed' : 'outcome rejected'}>{state}</span> generation{' '}
        {number}
      </p>
      {isDraining && (
        <Message kind="notice">The service is stopping: it finishes the requests in progress.</Message>
      )}
      <Problems
        kind="error"
        title={`The last reload was refused. Generation ${number} is still in use.`}
        problems={problems}
      />
      <Problems
        kind="notice"
        title="Warnings of the configuration"
        problems={configuration.problems.filter(({ severity }) => severity === 'warning')}
      />
    </LivePart>
  );
}

/** In seconds; `undefined` = the ledger is not reconciled with Blazar. */
function comparedEvery({ configuration, enforcement }: Generation): number | undefined {
  const { reconcile_interval: every } = sectionOf(configuration, blazarSection);
  return every > 0 && enforcement.keystone !== undefined && enforcement.claimants.length > 0
    ? every
    : undefined;
}

interface ProblemsProps {
  readonly kind: 'error' | 'notice';
  readonly title: string;
  readonly problems: readonly Problem[];
}

function Problems({ kind, title, problems }: ProblemsProps) {
  return problems.length === 0 ? null : (
    <section class={kind} aria-label={title}>
      <b>{title}</b>
      <ul>
        {problems.map((problem) => (
          <li>
            <Text>{formatProblem(problem)}</Text>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The filters in the order in which they run, each with its set options, and the exempt projects. */
function Filters({ filters, settings }: Pick<Configuration, 'filters' | 'settings'>) {
  const own = settings.filter(({ option }) => option.section === 'enforcement');
  const exempt = own.find(({ option }) => option.name === 'exempt_projects');
  const projects = exempt === undefined ? '' : shownValue(exempt);
  return (
    <Section id="filters" title="Enabled filters">
      {filters.length === 0 ? (
        <p>No filter is enabled: every lease is allowed.</p>
      ) : (
        <ol class="filters">
          {filters.map(({ installed, audit }) => (
            <li>
              <b>
                <Text>{installed.name}</Text>
              </b>{' '}
              <span class={audit ? 'mode audit' : 'mode'}>
                {audit ? 'audit: tried, not enforced' : 'enforced'}
              </span>
              <Limits options={installed.options} settings={own} />
            </li>
          ))}
        </ol>
      )}
      <p>
        <b>Exempt projects:</b> {projects ? <Text>{projects}</Text> : 'none'}
      </p>
    </Section>
  );
}

interface LimitsProps {
  readonly options: ConfiguredFilter['installed']['options'];
  readonly settings: readonly Setting[];
}

/** Only options that are set; defaults are on the configuration page. */
function Limits({ options, settings }: LimitsProps) {
  const names = new Set(options.map(({ name }) => name));
  const set = settings.filter(({ option, origin }) => names.has(option.name) && origin.kind !== 'default');
  return set.length === 0 ? null : (
    <ul class="limits">
      {set.map((setting) => (
        <li>
          {setting.option.name} = <Value {...setting} />
        </li>
      ))}
    </ul>
  );
}

function RefusalsSection(refusals: Awaited<ReturnType<typeof refusalsNow>>) {
  const { filters, latest, isPartial, of } = refusals;
  return (
    <Section id="refused" title="Refusals" isLive>
      {of === 'away' && <Message kind="error">{AWAY}</Message>}
      <p class="hint">
        {of === 'all' ? 'In the last day, by all replicas.' : 'Of the last 50 decisions of this process.'}
        {isPartial && ' There were more; the newest 500 are counted.'}
      </p>
      {filters.length === 0 ? (
        <p>No refusals.</p>
      ) : (
        <>
          <Table
            label="Refusals by filter"
            columns={REFUSAL_COLUMNS}
            rows={filters}
            rowProps={({ filter }) => ({ 'data-key': filter ?? '' })}
          />
          <DecisionTable label="Latest refusals" decisions={latest} />
        </>
      )}
      <p>
        <a href="/decisions?outcome=refused">All refusals</a>
      </p>
    </Section>
  );
}

const REFUSAL_COLUMNS: readonly Column<FilterRefusals>[] = [
  column('Filter', undefined, ({ filter }) =>
    filter === null ? (
      <span class="none">no filter</span>
    ) : (
      <a href={pathWith('/decisions', { filter })}>
        <Text>{filter}</Text>
      </a>
    ),
  ),
  column('Last hour', 'number', ({ hour }) => hour),
  column('Last day', 'number', ({ day }) => day),
  column('Last (UTC)', 'time', ({ last }) => (
    <time dateTime={last}>{last.slice(0, 19).replace('T', ' ')}</time>
  )),
];

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MOST = 500;
const SHOWN = 8;

interface FilterRefusals {
  /** `null` = not refused by a filter, such as an invalid request. */
  readonly filter: string | null;
  readonly hour: number;
  readonly day: number;
  /** The time of its last refusal, ISO 8601. */
  readonly last: string;
}

/** By filter, the most refusals first; `latest`: newest first; `isPartial`: there were more than `MOST`. */
async function refusalsNow(request: PageRequest) {
  const now = Date.now();
  const { items, next, of } = await findDecisions(request, {
    outcomes: REFUSED,
    since: now - DAY,
    limit: MOST,
  });
  const filters = new Map<string | null, FilterRefusals>();
  for (const { record } of items) {
    const { filter, time } = record;
    const { hour = 0, day = 0, last = time } = filters.get(filter) ?? {};
    const isOfHour = now - Date.parse(time) < HOUR;
    filters.set(filter, { filter, hour: hour + (isOfHour ? 1 : 0), day: day + 1, last });
  }
  return {
    filters: [...filters.values()].sort((a, b) => b.hour - a.hour || b.day - a.day),
    latest: items.slice(0, SHOWN),
    isPartial: next !== undefined,
    of,
  };
}

/** Maximum delay of the page by the database, in seconds. */
const PATIENCE = 2;

/** `undefined` = without stored decisions, replicas are unknown; `away` = the list cannot be read (logged). */
type Replicas = readonly PresentReplica[] | 'away' | undefined;

async function replicasNow({ decisions }: Generation): Promise<Replicas> {
  return (
    decisions &&
    withinDeadline(PATIENCE, (wait) => decisions.replicas.replicas(wait)).catch(() => 'away' as const)
  );
}

function ReplicasSection({ replicas }: { readonly replicas: Replicas }) {
  return (
    <Section id="replicas" title="Replicas" isLive>
      {replicas === undefined ? (
        <p>Other replicas are not known: decisions are not stored.</p>
      ) : replicas === 'away' ? (
        <Message kind="error">The list of replicas cannot be read at the moment.</Message>
      ) : (
        <Listed replicas={replicas} />
      )}
      <details>
        <summary>Data that replicas share, and data of each replica</summary>
        <Table
          label="Data that replicas share, and data of each replica"
          columns={SCOPES}
          rows={SCOPE_ROWS}
        />
      </details>
    </Section>
  );
}

function Listed({ replicas }: { readonly replicas: readonly PresentReplica[] }) {
  const differ = (['version', 'digest'] as const).filter(
    (name) => new Set(replicas.map((one) => one[name])).size > 1,
  );
  return (
    <>
      {differ.length > 0 && (
        <Message kind="notice">
          Replicas differ in their {differ.map((name) => DIFFERENCES[name]).join(' and ')}: their decisions
          may differ, too.
        </Message>
      )}
      <p class="hint">
        A replica that was killed is listed for {REPLICA_LISTED} seconds. Each replica counts its own
        generations. Equal configurations have equal digests; secrets are not compared.
      </p>
      <Table
        label="Replicas of the service"
        columns={REPLICA_COLUMNS}
        rows={replicas}
        rowProps={({ name }) => ({ 'data-key': name })}
        empty="No replica is listed yet."
      />
    </>
  );
}

const DIFFERENCES = { version: 'version', digest: 'configuration' };

const REPLICA_COLUMNS: readonly Column<PresentReplica>[] = [
  column('Replica', 'id', ({ name, isSelf }) => (
    <>
      <Text>{name}</Text>
      {isSelf && <small> this one</small>}
    </>
  )),
  column('Version', undefined, ({ version }) => <Text>{version}</Text>),
  column('Generation', 'number', ({ generation }) => generation),
  column('Configuration', 'id', ({ digest }) => <Text>{digest}</Text>),
];

type Scope = readonly [what: string, of: 'each' | 'all'];

const SCOPE_ROWS: readonly Scope[] = [
  ['Leases, budgets, stored decisions, queued messages', 'all'],
  ['Sessions of the console, wrong passwords', 'all'],
  ['The replica that compares with Blazar and SkyPilot', 'all'],
  ['Configuration and its generation: each reloads by itself', 'each'],
  ['Circuit breakers of external services', 'each'],
  ['Caches: tokens that Keystone has validated, names of projects and users', 'each'],
  ['Requests under way and queued, wrong tokens, streams of live updates', 'each'],
  ['Metrics, decision log', 'each'],
];

const SCOPES: readonly Column<Scope>[] = [
  column('Data', undefined, ([what]) => what),
  column('Of', undefined, ([, of]) =>
    of === 'all' ? 'all replicas that share the database' : 'each replica',
  ),
];
