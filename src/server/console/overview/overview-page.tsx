/** The first page of whoever keeps the service running: what is enforced, and what is refused. */

import { formatProblem, type Problem } from '../../../base/errors.ts';
import type { Setting } from '../../../config/resolve.ts';
import { type ConfiguredFilter, sectionOf } from '../../../enforcement/configuration.ts';
import type { ClusterView } from '../../../ledger/reports/ledger-status.ts';
import { blazarSection } from '../../../openstack/options.ts';
import type { Generation } from '../../configuration/generation.ts';
import { shownValue } from '../configuration.tsx';
import type { ConsolePage, PageRequest } from '../page.ts';
import { LivePart, Message, Text } from '../parts/parts.tsx';
import { ClustersSection, clustersNow, type InStep, InStepSection, inStep } from './ledger-state.tsx';
import { type Refusals, RefusalsSection, refusalsNow } from './refusals.tsx';
import { type Replicas, ReplicasSection, replicasNow } from './replicas.tsx';

export const overviewPage: ConsolePage = {
  method: 'GET',
  path: '/',
  action: 'see-service',
  label: 'Overview',
  answer: async (request) => {
    const [refusals, replicas, state, clusters] = await Promise.all([
      refusalsNow(request),
      replicasNow(request.generation),
      inStep(request.generation),
      clustersNow(request.generation),
    ]);
    return { title: 'Overview', main: <Overview {...{ request, refusals, replicas, state, clusters }} /> };
  },
};

interface OverviewProps {
  readonly request: PageRequest;
  readonly refusals: Refusals;
  readonly replicas: Replicas;
  readonly state: InStep | 'none' | 'away';
  readonly clusters: readonly ClusterView[] | 'none' | 'away';
}

function Overview({ request, refusals, replicas, state, clusters }: OverviewProps) {
  const { generation, problems, isDraining } = request;
  const { number, configuration } = generation;
  const { filters, settings } = configuration;
  const warnings = configuration.problems.filter(({ severity }) => severity === 'warning');
  return (
    <>
      <LivePart name="state">
        <p class="state">
          <State request={request} /> generation {number}
        </p>
        {isDraining && (
          <Message kind="notice">The service is stopping: it finishes the requests in progress.</Message>
        )}
        {problems.length > 0 && (
          <Problems
            kind="error"
            title={`The last reload was refused. Generation ${number} is still in use.`}
            problems={problems}
          />
        )}
        {warnings.length > 0 && (
          <Problems kind="notice" title="Warnings of the configuration" problems={warnings} />
        )}
      </LivePart>
      <Filters filters={filters} settings={settings} />
      <LivePart name="refused">
        <RefusalsSection {...refusals} />
      </LivePart>
      <LivePart name="replicas">
        <ReplicasSection replicas={replicas} />
      </LivePart>
      {clusters !== 'none' && (
        <LivePart name="clusters">
          <ClustersSection clusters={clusters} />
        </LivePart>
      )}
      <LivePart name="in-step">
        <InStepSection state={state} every={comparedEvery(generation)} />
      </LivePart>
    </>
  );
}

/** In seconds; `undefined` = the ledger is not compared with Blazar. */
function comparedEvery({ configuration, enforcement }: Generation): number | undefined {
  const { reconcile_interval: every } = sectionOf(configuration, blazarSection);
  return every > 0 && enforcement.keystone !== undefined && enforcement.claimants.length > 0
    ? every
    : undefined;
}

/** In the words of /readyz. */
function State({ request: { generation, problems, isDraining } }: Pick<OverviewProps, 'request'>) {
  const followed = generation.kubernetes?.cluster?.source.health.state;
  const state = isDraining
    ? 'draining'
    : problems.length > 0
      ? 'configuration not valid'
      : followed === 'starting' || followed === 'stale'
        ? 'policies not known'
        : 'ready';
  return <span class={state === 'ready' ? 'outcome allowed' : 'outcome rejected'}>{state}</span>;
}

interface ProblemsProps {
  readonly kind: 'error' | 'notice';
  readonly title: string;
  readonly problems: readonly Problem[];
}

function Problems({ kind, title, problems }: ProblemsProps) {
  return (
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

interface FiltersProps {
  readonly filters: readonly ConfiguredFilter[];
  readonly settings: readonly Setting[];
}

/** The filters in the order in which they run, each with what is set for it, and the exempt projects. */
function Filters({ filters, settings }: FiltersProps) {
  const own = settings.filter(({ option }) => option.section === 'enforcement');
  const exempt = own.find(({ option }) => option.name === 'exempt_projects');
  const projects = exempt === undefined ? '' : shownValue(exempt);
  return (
    <section aria-labelledby="filters">
      <h2 id="filters">What is enforced</h2>
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
              <Limits settings={settingsOf(installed.options, own)} />
            </li>
          ))}
        </ol>
      )}
      <p>
        <b>Exempt projects:</b> {projects ? <Text>{projects}</Text> : 'none'}
      </p>
    </section>
  );
}

/** Those that are set; what is a default stands on the page of the configuration. */
function settingsOf(
  options: ConfiguredFilter['installed']['options'],
  settings: readonly Setting[],
): readonly Setting[] {
  const names = new Set(options.map(({ name }) => name));
  return settings.filter(({ option, origin }) => names.has(option.name) && origin.kind !== 'default');
}

function Limits({ settings }: { readonly settings: readonly Setting[] }) {
  return settings.length === 0 ? null : (
    <ul class="limits">
      {settings.map((setting) => (
        <li>
          {setting.option.name} = <Text>{shownValue(setting) ?? 'not set'}</Text>
          {typeof setting.value === 'number' &&
            setting.option.unit !== undefined &&
            ` ${setting.option.unit}`}
        </li>
      ))}
    </ul>
  );
}
