/** The first page for operators: what is enforced, and what is refused. */

import { formatProblem, type Problem } from '../../../base/errors.ts';
import type { Setting } from '../../../config/resolve.ts';
import { type Configuration, type ConfiguredFilter, sectionOf } from '../../../enforcement/configuration.ts';
import { blazarSection } from '../../../openstack/options.ts';
import type { Generation } from '../../configuration/generation.ts';
import { statusOf } from '../../health.ts';
import { shownValue, Value } from '../configuration.tsx';
import type { ConsolePage, PageRequest } from '../page.ts';
import { LivePart, Message, Section, Text } from '../parts/parts.tsx';
import { ClustersSection, clustersNow, InStepSection, inStep } from './ledger-state.tsx';
import { RefusalsSection, refusalsNow } from './refusals.tsx';
import { ReplicasSection, replicasNow } from './replicas.tsx';

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
    <Section id="filters" title="What is enforced">
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
